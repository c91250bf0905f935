/** What tests ask of the database itself: whether anything was written, and who waits for whom. */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';

/**
 * A digest of every table. Two that are equal mean that nothing was written in between; when a key was last used is
 * left out, and how many requests came: both are noted whatever becomes of the request.
 */
export async function digestTables(pool: pg.Pool): Promise<Record<string, string>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_name <> 'rate_limits'`,
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
    const { rows } = await pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (rows.length === wanted) return;
    if (Date.now() > end) throw new Error(`${rows.length} statements wait for a lock, not ${wanted}`);
    await delay(BLOCKED_POLL_MS);
  }
}

/**
 * Runs the tasks while a transaction holds what they need, and ends it when all of them wait for it.
 *
 * @param race.hold takes the lock; `race.change` is what the transaction does before it lets go
 */
export async function raceBehind<T>(
  pool: pg.Pool,
  race: {
    readonly hold: (holder: pg.PoolClient) => Promise<unknown>;
    readonly change?: (holder: pg.PoolClient) => Promise<unknown>;
  },
  tasks: readonly (() => Promise<T>)[],
): Promise<T[]> {
  const holder = await pool.connect();
  try {
    await holder.query('BEGIN');
    await race.hold(holder);
    const racing = Promise.all(tasks.map((task) => task()));
    await untilBlocked(pool, tasks.length);
    await race.change?.(holder);
    await holder.query('COMMIT');
    return await racing;
  } finally {
    // Closed, not reused: after a failure the transaction is still open.
    holder.release(true);
  }
}
