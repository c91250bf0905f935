/** Readiness (contract §15). */
import { sql } from 'drizzle-orm';
import type { Queryable } from '../client.ts';

export type DatabaseProbe = {
  /** How many migrations were applied. */
  readonly applied: number;
  /** The server is a standby, or refuses to write. */
  readonly isReadOnly: boolean;
  readonly now: Date;
};

/** @throws when the database was never migrated or cannot be reached */
export async function probeDatabase(db: Queryable): Promise<DatabaseProbe> {
  const { rows } = await db.execute<{ applied: number; is_read_only: boolean; now_ms: number }>(
    sql`SELECT count(*)::int AS applied, current_setting('transaction_read_only')::boolean AS is_read_only,
      extract(epoch FROM clock_timestamp())::float8 * 1000 AS now_ms
    FROM drizzle.__drizzle_migrations`,
  );
  const [row] = rows;
  if (!row) throw new Error('the database did not answer the probe');
  return { applied: row.applied, isReadOnly: row.is_read_only, now: new Date(row.now_ms) };
}
