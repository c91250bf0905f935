/** Compares the keys of a process with what stored data needs, before the process serves. */
import { setTimeout as delay } from 'node:timers/promises';
import type pino from 'pino';
import type { Config } from '../config/load.ts';
import { type Connection, causeOf, isUnavailable } from '../db/client.ts';
import { checkServiceKeys } from '../db/queries/service-key.ts';

/** How long until the next try, while the database does not answer. */
const RETRY_MS = 5_000;

/** SQLSTATE: a migration has not created the table, or not granted it to this role yet. */
const NOT_MIGRATED = ['42P01', '42501'];

export type KeyCheckDeps = {
  readonly config: Pick<Config, 'encryptionKeys' | 'certificateSigningKeys'>;
  /** Opens a connection for one try. */
  readonly open: () => Pick<Connection, 'db' | 'close'>;
  readonly log: Pick<pino.Logger, 'warn'>;
  /** Ends the process. */
  readonly refuse: (faults: readonly string[]) => void;
};

/** A database that does not answer yet is no reason not to start: the keys are compared once it does. */
export async function checkKeys({ config, open, log, refuse }: KeyCheckDeps): Promise<void> {
  const keys = { ENCRYPTION_KEYS: config.encryptionKeys, CERTIFICATE_SIGNING_KEY: config.certificateSigningKeys };
  const check = async (): Promise<boolean> => {
    const { db, close } = open();
    try {
      const faults = await checkServiceKeys(db, keys, new Date());
      if (faults.length > 0) refuse(faults);
      return true;
    } catch (error) {
      const cause = causeOf(error);
      const isNotMigrated = cause instanceof Error && 'code' in cause && NOT_MIGRATED.includes(String(cause.code));
      if (!isUnavailable(error) && !isNotMigrated) throw error;
      log.warn({ err: error }, 'the keys could not be compared with those of the database yet');
      return false;
    } finally {
      await close();
    }
  };
  const repeat = async (): Promise<void> => {
    do await delay(RETRY_MS, undefined, { ref: false });
    while (!(await check()));
  };
  if (!(await check())) void repeat();
}
