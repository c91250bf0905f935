/** What tests ask of the database itself: whether anything was written, and who waits for whom. */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';

/**
 * A digest of every table. Two that are equal mean that nothing was written in between; when a key was last used is
 * left out, since that is noted whatever becomes of the request.
 */
export async function digestTables(pool: pg.Pool): Promise<Record<string, string>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public'`,
  );
  const digests = tables.map(
    ({ name }) =>
      `SELECT '${name}' AS name, md5(coalesce(string_agg(line, ',' ORDER BY line), '')) AS digest FROM (SELECT (to_jsonb(t) - 'last_used_at')::text AS line FROM ${name} t) lines`,
  );
  const { rows } = await pool.query<{ name: string; digest: string }>(digests.join(' UNION ALL '));
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}

/** Everything that the database holds, as text; for looking for what must not be in it. */
export async function dumpTables(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ text: string }>(`SELECT database_to_xml(true, false, '')::text AS text`);
  return rows[0]?.text ?? '';
}

const BLOCKED_WAIT_MS = 10_000;
const BLOCKED_POLL_MS = 5;

/** Waits until this many statements wait for a lock, so that a race starts with everybody at the line. */
export async function untilBlocked(pool: pg.Pool, wanted: number): Promise<void> {
  const end = Date.now() + BLOCKED_WAIT_MS;
  for (;;) {
    const { rows } = await pool.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
    if (rows.length === wanted) return;
    if (Date.now() > end) throw new Error(`${rows.length} statements wait for a lock, not ${wanted}`);
    await delay(BLOCKED_POLL_MS);
  }
}

/**
 * Runs the tasks while one row is locked and lets it go when all of them wait for it.
 *
 * @param lockStatement such as `SELECT 1 FROM recipients WHERE recipient_id = $1 FOR UPDATE`
 */
export async function raceBehindLock<T>(pool: pg.Pool, lockStatement: string, values: readonly unknown[], tasks: readonly (() => Promise<T>)[]): Promise<T[]> {
  const holder = await pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query(lockStatement, [...values]);
    const racing = Promise.all(tasks.map((task) => task()));
    await untilBlocked(pool, tasks.length);
    await holder.query('COMMIT');
    return await racing;
  } finally {
    holder.release();
  }
}
