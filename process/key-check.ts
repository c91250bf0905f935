/** Compares the keys of a process with what stored data needs, before the process serves. */
import { setTimeout as delay } from 'node:timers/promises';
import type pino from 'pino';
import type { Config } from '../config/load.ts';
import { causeOf, type Database, isUnavailable } from '../db/client.ts';
import { checkServiceKeys } from '../db/queries/service-key.ts';

/** How long until the next try, while the database does not answer. */
const RETRY_MS = 5_000;

/** SQLSTATE of a table that does not exist. */
const NOT_MIGRATED = '42P01';

export type KeyCheckDeps = {
  readonly config: Pick<Config, 'encryptionKeys' | 'certificateSigningKeys'>;
  readonly db: Database;
  readonly log: pino.Logger;
  /** Ends the process. */
  readonly refuse: (faults: readonly string[]) => void;
};

/** A database that does not answer yet is no reason not to start: the keys are compared once it does. */
export async function checkKeys({ config, db, log, refuse }: KeyCheckDeps): Promise<void> {
  const keys = { ENCRYPTION_KEYS: config.encryptionKeys, CERTIFICATE_SIGNING_KEY: config.certificateSigningKeys };
  const check = async (): Promise<boolean> => {
    try {
      const faults = await checkServiceKeys(db, keys, new Date());
      if (faults.length > 0) refuse(faults);
      return true;
    } catch (error) {
      const cause = causeOf(error);
      const isNotMigrated = cause instanceof Error && 'code' in cause && cause.code === NOT_MIGRATED;
      if (!isUnavailable(error) && !isNotMigrated) throw error;
      log.warn({ err: error }, 'the keys could not be compared with those of the database yet');
      return false;
    }
  };
  const repeat = async (): Promise<void> => {
    do await delay(RETRY_MS, undefined, { ref: false });
    while (!(await check()));
  };
  if (!(await check())) void repeat();
}
