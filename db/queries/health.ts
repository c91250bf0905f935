/** Readiness (contract §15). */
import { sql } from 'drizzle-orm';
import type { Queryable } from '../client.ts';

/** How many migrations were applied. @throws when the database was never migrated or cannot be reached */
export async function countAppliedMigrations(db: Queryable): Promise<number> {
  const { rows } = await db.execute<{ applied: number }>(
    sql`SELECT count(*)::int AS applied FROM drizzle.__drizzle_migrations`,
  );
  return rows[0]?.applied ?? 0;
}
