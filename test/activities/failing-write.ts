import type pg from 'pg';

/** Every write to a table fails during `run`, as it would on a full disk. */
export async function whileWritesFail<T>(owner: pg.Pool, table: string, run: () => Promise<T>): Promise<T> {
  await owner.query(`ALTER TABLE ${table} ADD CONSTRAINT fails CHECK (false) NOT VALID`);
  try {
    return await run();
  } finally {
    await owner.query(`ALTER TABLE ${table} DROP CONSTRAINT fails`);
  }
}
