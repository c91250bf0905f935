/** Compares the keys of a process with what stored data needs, before its first statement. */
import { setTimeout } from 'node:timers/promises';
import type pino from 'pino';
import type { Config } from '../config/load.ts';
import { type Connection, causeOf, DatabaseNotReadyError, isUnavailable } from '../db/client.ts';
import { checkServiceKeys, type ServiceKeys } from '../db/queries/service-key.ts';

/** How soon a comparison that could not be made is tried again. */
const RETRY_MS = 1_000;
/** For how long who needs a connection waits for a comparison: it takes minutes when whole tables are read. */
const WAIT_MS = 3_000;

/** SQLSTATE: a migration has not created the table, or not granted it to this role yet. */
const NOT_MIGRATED = ['42P01', '42501'];

type OwnKeys = Pick<Config, 'encryptionKeys' | 'certificateSigningKeys' | 'apiKeyPeppers'>;

/** The keys of a configuration, as they are recorded. */
export const serviceKeysOf = (config: OwnKeys): ServiceKeys => ({
  ENCRYPTION_KEYS: config.encryptionKeys,
  CERTIFICATE_SIGNING_KEY: config.certificateSigningKeys,
  API_KEY_PEPPER: config.apiKeyPeppers.map(({ id, secret }) => ({ id, key: Buffer.from(secret) })),
});

export type KeyCheckDeps = {
  readonly config: OwnKeys;
  /** Opens a connection for one try. */
  readonly open: () => Pick<Connection, 'db' | 'close'>;
  readonly log: Pick<pino.Logger, 'warn'>;
  /** Ends the process. */
  readonly refuse: (faults: readonly string[]) => void;
};

/**
 * A database that does not answer yet is no reason not to start. Until the keys could be compared, no connection of the
 * process is used: a wrong key would seal what nobody can open.
 *
 * @returns resolves once the keys are those of the stored data, and otherwise rejects with `DatabaseNotReadyError`
 */
export function createKeyCheck({ config, open, log, refuse }: KeyCheckDeps): () => Promise<void> {
  const keys = serviceKeysOf(config);
  let isCompared = false;
  let isWarned = false;
  let failed: { readonly atMs: number; readonly error: Error } | undefined;
  let comparison: Promise<void> | undefined;
  const compare = async (): Promise<void> => {
    const { db, close } = open();
    let cause: unknown;
    try {
      const faults = await checkServiceKeys(db, keys, new Date(), ({ list, keyId }) =>
        log.warn({ list, key_id: keyId }, 'stored data is searched for what needs a key that this process lacks'),
      );
      if (faults.length > 0) refuse(faults);
      isCompared = faults.length === 0;
    } catch (error) {
      cause = causeOf(error);
      const isNotMigrated = cause instanceof Error && 'code' in cause && NOT_MIGRATED.includes(String(cause.code));
      if (!isUnavailable(error) && !isNotMigrated) throw error;
      if (!isWarned) log.warn({ err: error }, 'the keys could not be compared with those of the database yet');
      isWarned = true;
    } finally {
      await close();
    }
    if (isCompared) return;
    failed = { atMs: performance.now(), error: new DatabaseNotReadyError(cause) };
    throw failed.error;
  };
  return async () => {
    if (isCompared) return;
    if (failed && performance.now() - failed.atMs < RETRY_MS) throw failed.error;
    comparison ??= inTime(
      compare().finally(() => {
        comparison = undefined;
      }),
    );
    await comparison;
  };
}

/** A process whose keys are still compared listens, and is not ready. */
const inTime = (comparison: Promise<void>): Promise<void> =>
  Promise.race([
    comparison,
    setTimeout(WAIT_MS, undefined, { ref: false }).then(() => {
      throw new DatabaseNotReadyError();
    }),
  ]);
