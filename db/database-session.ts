/**
 * What holds for each session of the service. A direct connection sets it by its start parameters. A pooler shares
 * sessions between connections and passes no parameters on: there the role has it, and `migrate` gives it to the role.
 */
import pg from 'pg';

const LIMITS = {
  statement_timeout: '5s',
  lock_timeout: '3s',
  idle_in_transaction_session_timeout: '10s',
} as const;

const SETTINGS = {
  ...LIMITS,
  // A page read out of order costs about as much as the next one, as on any disk of today. With PostgreSQL's default, a
  // plan that is made while a table is almost empty reads all of it, and the prepared statement keeps that plan when it
  // grows.
  random_page_cost: '1.1',
  // A database can be set to others. Times would be read wrongly, without an error, and commands rely on what others have
  // committed meanwhile.
  datestyle: 'ISO',
  default_transaction_isolation: 'read committed',
} as const;

/** The start parameter `options`. */
export const startOptions = (lockTimeoutMs: number | undefined): string =>
  Object.entries({ ...SETTINGS, ...(lockTimeoutMs !== undefined && { lock_timeout: `${lockTimeoutMs}ms` }) })
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ');

/** Gives the role these settings in this database. `role` and `database` are quoted. */
export const roleSettings = (role: string, database: string): string[] =>
  Object.entries(SETTINGS).map(
    ([name, value]) => `ALTER ROLE ${role} IN DATABASE ${database} SET ${name} = ${pg.escapeLiteral(value)}`,
  );

const PAGE = '(docs/operations.md, "Behind a pooler")';
const NEEDS_LISTEN_URL = `DATABASE_URL leads to a pooler: DATABASE_LISTEN_URL must be PostgreSQL's own address ${PAGE}`;
const TOO_OLD = `the pooler of DATABASE_URL keeps no prepared statements: it must be PgBouncer 1.21 or later with pool_mode=transaction and max_prepared_statements above 0 ${PAGE}`;
const noLimit = (name: string): string =>
  `the role of DATABASE_URL has no ${name}, and a pooler passes none on: run npm run migrate, or ALTER ROLE as its owner ${PAGE}`;

/** SQLSTATEs: a prepared statement does not exist, or exists already. */
export const STATEMENT_LOST = ['26000', '42P05'];
const ROUNDS = 4;

/** PgBouncer and others answer a connection themselves, and tell it a number that is no process of PostgreSQL. */
export async function isDirect(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return 'processID' in client && client.processID === rows[0]?.pid;
}

/**
 * Why the service cannot work with what DATABASE_URL leads to, as a fault of the configuration. Undefined when it can,
 * and when PostgreSQL does not answer: that is no reason not to start.
 *
 * @param isPooled whether the configuration says that it leads to a pooler
 */
export async function findPoolerFault(pool: pg.Pool, isPooled: boolean): Promise<string | undefined> {
  try {
    return isPooled ? await findFaultOfPooler(pool) : await findHiddenPooler(pool);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) return undefined;
    if (error.message.includes('unsupported startup parameter')) return NEEDS_LISTEN_URL;
    return STATEMENT_LOST.includes(error.code ?? '') ? TOO_OLD : undefined;
  }
}

async function findHiddenPooler(pool: pg.Pool): Promise<string | undefined> {
  const client = await pool.connect();
  try {
    return (await isDirect(client)) ? undefined : NEEDS_LISTEN_URL;
  } finally {
    client.release();
  }
}

/** Limits that neither this session has nor the next one of this role will have. A pooler keeps sessions for long. */
const MISSING_LIMITS = `
  SELECT name FROM unnest(ARRAY['${Object.keys(LIMITS).join("', '")}']) AS name
  WHERE current_setting(name) = '0' AND NOT EXISTS (
    SELECT FROM pg_db_role_setting
      JOIN pg_roles r ON r.oid = setrole LEFT JOIN pg_database d ON d.oid = setdatabase, unnest(setconfig) AS setting
    WHERE rolname = current_user AND (setdatabase = 0 OR datname = current_database())
      AND starts_with(setting, name || '='))`;

/**
 * Two connections prepare a statement by one name. A pooler that does not tell them apart gives one session to both.
 */
async function findFaultOfPooler(pool: pg.Pool): Promise<string | undefined> {
  const clients: pg.PoolClient[] = [];
  const probe = { name: 'settlement-pooler-probe', text: MISSING_LIMITS };
  let missing: { readonly name: string }[] = [];
  try {
    clients.push(await pool.connect());
    // If the server has no second one, the first one is given back all the same.
    clients.push(await pool.connect());
    for (let round = 0; round < ROUNDS; round += 1)
      for (const client of clients) missing = (await client.query<{ name: string }>(probe)).rows;
  } finally {
    // Their prepared statement is of no more use.
    for (const client of clients) client.release(true);
  }
  return missing[0] && noLimit(missing[0].name);
}
