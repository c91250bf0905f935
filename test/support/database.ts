/** What tests read from the database itself: whether anything was written, and what waits for a lock. */
import type pg from 'pg';
import { vi } from 'vitest';
import { WAIT } from './patience.ts';

/**
 * A digest of every table. If two digests are equal, nothing was written in between. The last use of a key and the
 * counts of requests are left out: every request writes them, also a refused one.
 */
export async function digestTables(pool: pg.Pool): Promise<Record<string, string>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT quote_ident(relname) AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
     AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'rate_limits'`,
  );
  const digests = tables.map(
    ({ name }) =>
      `SELECT '${name}' AS name, md5(coalesce(string_agg(line, ',' ORDER BY line), '')) AS digest
       FROM (SELECT (to_jsonb(t) - 'last_used_at' - 'last_used_from')::text AS line FROM ${name} t) lines`,
  );
  const { rows } = await pool.query<{ name: string; digest: string }>(digests.join(' UNION ALL '));
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}

/** The content of the whole database as text, to search for values that must not be in it. */
export async function dumpTables(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ text: string }>(`SELECT database_to_xml(true, false, '')::text AS text`);
  return rows[0]?.text ?? '';
}

/** Waits until exactly this many statements wait for a lock, so that all tasks of a race are at the same point. */
export async function untilBlocked(pool: pg.Pool, wanted: number): Promise<void> {
  const countBlocked = async (): Promise<void> => {
    const { rows } = await pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (rows.length !== wanted) throw new Error(`${rows.length} statements wait for a lock, not ${wanted}`);
  };
  await vi.waitFor(countBlocked, WAIT);
}

/** Cancels the statement that waits for a lock, as PostgreSQL does to one that waits for too long. */
export async function cancelBlocked(owner: pg.Pool): Promise<void> {
  await untilBlocked(owner, 1);
  await owner.query(
    `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
}

/**
 * Runs the tasks while a transaction holds a lock that they need, and commits it once all of them wait.
 *
 * @param race.hold takes the lock; `race.change` is what the transaction changes before it commits
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

/** Every write to a table fails during `run`, as it would on a full disk. */
export async function whileWritesFail<T>(owner: pg.Pool, table: string, run: () => Promise<T>): Promise<T> {
  await owner.query(`ALTER TABLE ${table} ADD CONSTRAINT fails CHECK (false) NOT VALID`);
  try {
    return await run();
  } finally {
    await owner.query(`ALTER TABLE ${table} DROP CONSTRAINT fails`);
  }
}

/** Runs this while another transaction holds what the statement locks. */
export async function whileLocked<T>(owner: pg.Pool, statement: string, run: () => Promise<T>): Promise<T> {
  const holder = await owner.connect();
  try {
    await holder.query(`BEGIN; ${statement}`);
    return await run();
  } finally {
    // Closed, not reused: that ends the transaction too.
    holder.release(true);
  }
}

/** Loses every outbox row that is written during `run`: what is committed then starts and signals no workflow. */
export async function losingOutboxRows(owner: pg.Pool, run: () => Promise<unknown>): Promise<void> {
  await owner.query(`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`);
  await owner.query('CREATE TRIGGER lose BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION lose()');
  try {
    await run();
  } finally {
    await owner.query('DROP FUNCTION lose() CASCADE');
  }
}

/** Runs statements with no trigger, as only someone with the password of the database's owner can. */
export async function withoutTriggers<T>(owner: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await owner.connect();
  try {
    await client.query("BEGIN; SET LOCAL session_replication_role = 'replica'");
    const result = await run(client);
    await client.query('COMMIT');
    return result;
  } finally {
    // Closed, not reused: after a failure the transaction is still open.
    client.release(true);
  }
}
