/**
 * The connection to PostgreSQL. Every wait has a limit: connecting, a statement, a lock, an idle transaction.
 */
import { DrizzleQueryError, sql } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { STATEMENT_LOST, startOptions } from './database-session.ts';
import { DatabaseRoleError, verifyRole } from './role.ts';
import * as schema from './schema/index.ts';
import { serveInTurn } from './tenant.ts';

export type Database = NodePgDatabase<typeof schema>;
/** An open transaction. A function that must be atomic with other statements takes this type. */
export type Tx = Parameters<Parameters<Database['transaction']>[0]>[0];
export type Queryable = Database | Tx;

/** The pool of a database, or the connection of a transaction. Drizzle has no public way to the second. */
export const driverOf = (db: Queryable): pg.Pool | pg.PoolClient =>
  (db._.session as unknown as { readonly client: pg.Pool | pg.PoolClient }).client;

/** For a connection, whether a new one or one of a pool that is in use. */
export const CONNECT_TIMEOUT_MS = 3_000;
/** An idle connection sends something after this time. */
const KEEP_ALIVE_MS = 30_000;
/** Of a process that serves tenants: who waits for a lock holds a connection that others need. */
export const TENANTS = { lockTimeoutMs: 250 } as const;
/**
 * Of a process that serves: twice the time after which PostgreSQL itself ends a statement (database-session.ts). A host
 * that vanishes ends no connection: without this limit, its statements would wait for a quarter of an hour.
 */
export const STATEMENT_TIMEOUT_MS = 10_000;

/**
 * Runs reads on one snapshot: that of the first of them.
 *
 * @throws whatever `read` or the database throws
 */
export const readSnapshot = <Result>(db: Database, read: (tx: Tx) => Promise<Result>): Promise<Result> =>
  db.transaction(read, { isolationLevel: 'repeatable read', accessMode: 'read only' });

/**
 * As `readSnapshot`, for reads of whole tables: each statement may take ten minutes, and ends soon after a process that
 * does not wait for it any more.
 */
export const readLongSnapshot = <Result>(db: Database, read: (tx: Tx) => Promise<Result>): Promise<Result> =>
  readSnapshot(db, async (tx) => {
    await tx.execute(sql`SET LOCAL statement_timeout = '10min'; SET LOCAL client_connection_check_interval = '5s'`);
    return await read(tx);
  });

/**
 * Runs changes in a transaction that is always rolled back. They return what they would return otherwise, and nothing
 * is written.
 *
 * @throws whatever `run` or the database throws
 */
export async function rehearse<Result>(db: Database, run: (db: Database) => Promise<Result>): Promise<Result> {
  const done = new Error('rolled back');
  let result: { readonly value: Result } | undefined;
  try {
    await db.transaction(async (tx) => {
      // A transaction has all that commands use of a database; their own transactions become savepoints of it.
      result = { value: await run(tx as unknown as Database) };
      throw done;
    });
  } catch (error) {
    if (error !== done) throw error;
  }
  if (!result) throw new Error('the rehearsal ended without a result');
  return result.value;
}

/** PostgreSQL was not reached: not by the network, not by TLS, or not in time. */
class DatabaseUnreachableError extends Error {
  constructor(cause: Error) {
    // The error of a connection to several addresses has no message of its own.
    const [first] = cause instanceof AggregateError ? cause.errors : [cause];
    super(first instanceof Error ? first.message : String(first), { cause });
    this.name = 'DatabaseUnreachableError';
  }
}

const unreachable = (error: Error): Error =>
  error instanceof pg.DatabaseError ? error : new DatabaseUnreachableError(error);

/** Whatever ends the connecting, except an answer of PostgreSQL itself, means that it was not reached. */
export class Client extends pg.Client {
  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error | null) => void): void;
  override connect(callback?: (error: Error | null) => void): Promise<pg.Client> | undefined {
    if (!callback) return super.connect().catch((error: Error) => Promise.reject(unreachable(error)));
    // The pool must have its listeners on the client when this returns.
    super.connect((error: Error | null) => callback(error && unreachable(error)));
    return undefined;
  }
}

export type Connection = {
  readonly db: Database;
  readonly pool: pg.Pool;
  /** How many wait for a connection. */
  waiting(): number;
  /** Opens all connections, as far as the server lets it. For the start of a process. */
  openAll(): Promise<void>;
  close(): Promise<void>;
};

/**
 * Opens a pool, which connects when the first query runs.
 *
 * @param options `onIdleError` is called when an idle connection breaks; the pool replaces it. `refusesOwner`: no
 * statement runs as a role that owns the tables. `untilReady`: each new connection waits for it, and fails as it does.
 * `tenants`: they get the connections in turn, and none waits longer for a lock. `keepsOpen`: no connection is closed
 * because it is idle. `isPooled`: the address leads to a pooler (database-session.ts). `statementTimeoutMs`: of this
 * side, for a server that does not answer
 */
export function connect(
  databaseUrl: string,
  options: {
    poolSizeMax: number;
    name: string;
    onIdleError: (error: Error) => void;
    refusesOwner?: boolean;
    untilReady?: (() => Promise<void>) | undefined;
    isPooled?: boolean;
    keepsOpen?: boolean;
    tenants?: { readonly lockTimeoutMs: number; readonly turnTimeoutMs?: number } | undefined;
    connectTimeoutMs?: number;
    statementTimeoutMs?: number | undefined;
  },
): Connection {
  const pool = new pg.Pool({
    Client,
    connectionString: databaseUrl,
    max: options.poolSizeMax,
    min: options.keepsOpen ? options.poolSizeMax : 0,
    // Firewalls drop a connection on which nothing is sent for minutes.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: options.name,
    connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    query_timeout: options.statementTimeoutMs,
    options: options.isPooled ? undefined : startOptions(options.tenants?.lockTimeoutMs),
    verify: (client, done) => {
      const check = async (): Promise<void> => {
        if (options.refusesOwner) await verifyRole(client);
        await options.untilReady?.();
      };
      check().then(() => done(), done);
    },
  });
  pool.on('error', options.onIdleError);
  /** Connections to a server that only reads, or does not answer. */
  const lost = new WeakSet<pg.PoolClient>();
  // An error event without a listener ends the process. This one comes when a connection breaks between two statements
  // of a transaction; the next statement on it fails anyway.
  pool.on('connect', (client) => {
    client.on('error', options.onIdleError);
    watchQueries(client, { lost, lockTimeoutMs: options.isPooled ? options.tenants?.lockTimeoutMs : undefined });
  });
  const connectNow = pool.connect.bind(pool);
  // The idle connections lead to the same server.
  pool.on('release', (error, client) => {
    if (!isServerLost(error) && !lost.has(client)) return;
    // If another request takes the connection first, this wait may time out: there is nothing to release then.
    for (let left = pool.idleCount; left > 0; left -= 1)
      connectNow((waited, _client, release) => {
        if (!waited) release(true);
      });
  });
  const turns = options.tenants ? serveInTurn(pool, options.tenants.turnTimeoutMs) : undefined;
  return {
    db: drizzle(pool, { schema }),
    pool,
    waiting: () => pool.waitingCount + (turns?.waiting() ?? 0),
    openAll: async () => {
      const opening = Array.from({ length: options.poolSizeMax }, () => pool.connect());
      for (const opened of await Promise.allSettled(opening)) if (opened.status === 'fulfilled') opened.value.release();
    },
    close: () => pool.end(),
  };
}

/** SQLSTATE of a write to a server that only reads. */
const READ_ONLY = '25006';
/** The driver's sentence when the server's answer to a statement did not come in time. */
const NO_ANSWER = 'Query read timeout';

/** The SQLSTATE of an error of PostgreSQL; empty for any other error. */
export const sqlStateOf = (error: unknown): string => (error instanceof pg.DatabaseError && error.code) || '';
const isServerLost = (error: unknown): boolean =>
  sqlStateOf(error) === READ_ONLY || (error instanceof Error && error.message === NO_ANSWER);

/**
 * After a failover, a connection may still lead to what was the primary, or to a host that has vanished. It ends once a
 * statement is refused because the server only reads, or is not answered, and the pool opens another one. So does one
 * whose session is not the one in which the driver has prepared its statements: the driver would never prepare them
 * again.
 *
 * @param options `lost`: where such a connection is noted. `lockTimeoutMs` of each transaction, where the session cannot
 *   have it
 */
function watchQueries(
  client: pg.PoolClient,
  { lost, lockTimeoutMs }: { readonly lost: WeakSet<pg.PoolClient>; readonly lockTimeoutMs: number | undefined },
): void {
  if (!(client instanceof pg.Client)) return;
  const watched = (query: unknown, ...rest: unknown[]): unknown => {
    const sent = lockTimeoutMs === undefined ? query : withLockTimeout(query, lockTimeoutMs);
    const result: unknown = Reflect.apply(pg.Client.prototype.query, client, [sent, ...rest]);
    if (result instanceof Promise)
      result.catch((error: unknown) => {
        if (isServerLost(error)) lost.add(client);
        if (lost.has(client) || STATEMENT_LOST.includes(sqlStateOf(error))) void client.end();
        // Drizzle keeps the connection of a transaction that could not begin.
        if (isBegin(query)) client.release(true);
      });
    return result;
  };
  client.query = watched as typeof client.query;
}

/** The statement with which Drizzle begins a transaction. */
const isBegin = (query: unknown): query is { readonly text: string } =>
  typeof query === 'object' && query !== null && 'text' in query && String(query.text).startsWith('begin');

/** The beginning of a transaction, with its limit in the same message. Every other query as it is. */
const withLockTimeout = (query: unknown, lockTimeoutMs: number): unknown =>
  isBegin(query) ? { ...query, text: `${query.text}; SET LOCAL lock_timeout = ${lockTimeoutMs}` } : query;

/** The driver's error that made a query fail; any other error as it is. */
export const causeOf = (error: unknown): unknown => (error instanceof DrizzleQueryError ? error.cause : error);

/** Whether PostgreSQL refused a statement: nothing of it was written. */
export const isRefused = (error: unknown): boolean => causeOf(error) instanceof pg.DatabaseError;

/** The process may not use the database yet: what it needs is not known to be there. The cause says why, if known. */
export class DatabaseNotReadyError extends Error {
  constructor(cause?: unknown) {
    super('The database cannot be used yet.', { cause });
    this.name = 'DatabaseNotReadyError';
  }
}

/** Whether PostgreSQL answered a process that could not use what is in the database, or may not yet. */
export function hasAnswered(error: unknown): boolean {
  const cause = causeOf(error);
  if (cause instanceof DatabaseNotReadyError) return cause.cause === undefined || hasAnswered(cause.cause);
  return isRefused(cause) && !isUnavailable(cause);
}

/** SQLSTATE classes and codes that say nothing about the request: the database was unreachable, missing or busy. */
const UNAVAILABLE_SQLSTATE = /^(08|28|53|57P|58|XX)|^(3D000|55P03|57014|40001|40P01|25006|25P03|26000|42P05)$/;
/** Of a connection that breaks, or that a pool does not have in time. */
const UNAVAILABLE_MESSAGES = [
  NO_ANSWER.toLowerCase(),
  'connection terminated',
  'timeout exceeded when trying to connect',
  'not queryable',
];
const UNAVAILABLE_ERRNO = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
]);

/**
 * Whether an error means that PostgreSQL could not be reached or gave up waiting, or that it is unknown whether a
 * transaction was committed. Such a request is answered 503 and may be repeated with the same key (contract §2).
 */
export function isUnavailable(error: unknown): boolean {
  const cause = causeOf(error);
  if (!(cause instanceof Error)) return false;
  if (cause instanceof DatabaseUnreachableError || cause instanceof DatabaseNotReadyError) return true;
  if (cause instanceof DatabaseRoleError) return true;
  if (cause instanceof pg.DatabaseError) return cause.code !== undefined && UNAVAILABLE_SQLSTATE.test(cause.code);
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return UNAVAILABLE_ERRNO.has(code) || UNAVAILABLE_MESSAGES.some((text) => cause.message.toLowerCase().includes(text));
}
