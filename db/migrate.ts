/** Brings a database to the current schema. Several processes may run it at the same time. */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import pg from 'pg';
import { PARTITIONS_AHEAD } from '../domain/retention.ts';
import { Client, CONNECT_TIMEOUT_MS } from './client.ts';
import { isDirect } from './database-session.ts';
import { giveSettings, grantServicePrivileges, MigrationError, refuseMissingRole } from './privilege.ts';

const MIGRATIONS_FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), 'migrations');

/** The key of the advisory lock: any number, the same in every process. */
const MIGRATION_LOCK = 7_146_301;

/** SQLSTATE. */
const INSUFFICIENT_PRIVILEGE = '42501';
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * A change of a table waits for its readers, and everybody else waits behind the change. So it gives up soon, lets the
 * others pass and tries again.
 */
const LOCK_TIMEOUT_MS = 100;
const LOCK_PAUSE_MS = 1_000;
const LOCK_TRIES_MAX = 250;

const KEEP_ALIVE_MS = 10_000;

/**
 * How often a second process asks whether the first one has migrated, when it says so, and how long it waits for that.
 */
const WAIT_MS = 200;
const WAIT_SAY_MS = 1_000;
const WAIT_REPEAT_MS = 10_000;
const WAIT_TIMEOUT_MS = 15 * 60_000;

const ownMigrations = () => readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER });

/** How many migrations this code expects. Readiness compares it with the database (contract §15). */
export const migrationCount = (): number => ownMigrations().length;

const OF_TABLES = `locktype IN ('relation', 'transactionid')`;
const OF_MIGRATIONS = `locktype = 'advisory' AND objid = ${MIGRATION_LOCK}`;
/**
 * Who holds locks, the longest transaction first. Its age is known only to the same role, and to one that may read it.
 */
const lockHolder = (locks: string): string => `
  SELECT pid, application_name AS name, extract(epoch FROM now() - xact_start)::int AS seconds FROM pg_stat_activity
   WHERE datname = current_database() AND pid <> pg_backend_pid()
     AND pid IN (SELECT pid FROM pg_locks WHERE granted AND ${locks})
   ORDER BY xact_start NULLS LAST LIMIT 1`;

/** `databaseUrl` is the service's, `migrationUrl` that of the role that owns the tables. One role may be both. */
export type DatabaseUrls = { readonly databaseUrl: string; readonly migrationUrl: string };

/**
 * Migrates as the owner, and grants the service's role what it needs together with the last migration: processes that
 * wait for that one begin their work at once. A database of a later version keeps its privileges: on the way back, that
 * version still serves.
 *
 * @param options `onLocked` gets a sentence each time that a table is locked, and while another process migrates, which
 *   it waits for `waitTimeoutMs`
 * @throws MigrationError when `migrationUrl` leads to a pooler or is not the owner's, when other migrations made
 *   the database, when a table or the migrations stay locked, or when the service's role does not exist
 */
export async function migrate(
  { databaseUrl, migrationUrl }: DatabaseUrls,
  { onLocked = ignore, waitTimeoutMs = WAIT_TIMEOUT_MS } = {},
): Promise<void> {
  const client = new Client({
    connectionString: migrationUrl,
    application_name: 'settlement-migrate',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    // A host that vanishes ends no connection, and a statement may take hours.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  });
  await client.connect();
  const serviceRole = roleOf(databaseUrl);
  const isOwner = serviceRole === roleOf(migrationUrl);
  try {
    // The pooler would keep the lock when this connection has ended, and the next migration would wait for ever.
    if (!(await isDirect(client)))
      throw new MigrationError(
        "MIGRATION_DATABASE_URL leads to a pooler: it must be PostgreSQL's own address, since a migration holds a lock of its session.",
      );
    if (!isOwner) await refuseMissingRole(client, serviceRole);
    await lockMigrations(client, onLocked, waitTimeoutMs);
    try {
      const applied = await refuseOtherMigrations(client);
      const missing = ownMigrations().slice(applied);
      const changed = missing.length < migrationCount() ? await changeIndexes(client, missing) : [];
      await client.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
      await whenUnlocked(client, onLocked, () => client.query(RECORDS));
      const transactions = withoutStatements(missing, changed).map(
        (migration) => () => applyMigration(client, migration),
      );
      const last = transactions.pop();
      for (const run of transactions) await whenUnlocked(client, onLocked, () => inTransaction(client, run));
      const finish = async (): Promise<void> => {
        await last?.();
        if (!isOwner && applied <= migrationCount()) await grantServicePrivileges(client, serviceRole);
      };
      await whenUnlocked(client, onLocked, () => inTransaction(client, finish));
      await client.query('SELECT add_partitions($1)', [PARTITIONS_AHEAD]);
    } catch (error) {
      explainRefusal(migrationUrl, error);
    }
    if (!isOwner) await giveSettings(client, serviceRole);
  } finally {
    await client.end();
  }
}

const ignore = (_sentence: string): void => undefined;

/** Polls: a statement that waits is an open transaction, and CREATE INDEX CONCURRENTLY waits for each of those. */
async function lockMigrations(
  client: pg.Client,
  onLocked: (sentence: string) => void,
  waitTimeoutMs: number,
): Promise<void> {
  const isLocked = async (): Promise<boolean> => {
    const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock($1) AS locked', [
      MIGRATION_LOCK,
    ]);
    return rows[0]?.locked === true;
  };
  const startedMs = performance.now();
  for (let sayAfterMs = WAIT_SAY_MS; !(await isLocked()); await delay(WAIT_MS)) {
    const waitedMs = performance.now() - startedMs;
    if (waitedMs < Math.min(sayAfterMs, waitTimeoutMs)) continue;
    const sentence = `another process migrates${await describeHolder(client, OF_MIGRATIONS)}`;
    if (waitedMs >= waitTimeoutMs) throw new MigrationError(`The migrations could not begin: ${sentence}`);
    onLocked(sentence);
    sayAfterMs += WAIT_REPEAT_MS;
  }
}

type Migration = ReturnType<typeof ownMigrations>[number];

const CREATE_INDEX = /CREATE INDEX (IF NOT EXISTS (\w+)\s[^;]+);/g;
const DROP_INDEX = /DROP INDEX IF EXISTS ([\w, ]+);/g;
/** SQLSTATE: a table or a column that another missing migration creates. */
const NOT_YET_THERE = ['42P01', '42703'];

/**
 * Builds and drops the indexes of missing migrations without holding anybody up. Inside of a migration, a build would
 * lock its table against writers, and so would a statement that finds its index already there. Waits for open
 * transactions.
 *
 * @returns the statements that need not run any more
 */
async function changeIndexes(client: pg.Client, missing: readonly Migration[]): Promise<string[]> {
  const text = missing.flatMap(({ sql }) => sql).join(';');
  const changed: string[] = [];
  for (const [whole, definition = '', name = ''] of text.matchAll(CREATE_INDEX)) {
    // An interrupted build leaves an invalid index.
    const { rowCount } = await client.query(
      'SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid',
      [name],
    );
    if (rowCount) await client.query(`DROP INDEX CONCURRENTLY ${name}`);
    try {
      await client.query(`CREATE INDEX CONCURRENTLY ${definition}`);
      changed.push(whole);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || !NOT_YET_THERE.includes(error.code ?? '')) throw error;
    }
  }
  for (const [whole, names = ''] of text.matchAll(DROP_INDEX)) {
    for (const name of names.split(', ')) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    changed.push(whole);
  }
  return changed;
}

const withoutStatements = (migrations: readonly Migration[], statements: readonly string[]): Migration[] =>
  migrations.map((migration) => ({
    ...migration,
    sql: migration.sql.map((text) => statements.reduce((left, statement) => left.replace(statement, ''), text)),
  }));

/** As drizzle-kit's own runner keeps it. Only the owner may run this, also when nothing is missing. */
const RECORDS = `
  CREATE SCHEMA IF NOT EXISTS drizzle;
  CREATE TABLE IF NOT EXISTS drizzle.__drizzle_migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)`;

async function applyMigration(client: pg.Client, { sql, hash, folderMillis }: Migration): Promise<void> {
  for (const text of sql) await client.query(text);
  await client.query('INSERT INTO drizzle.__drizzle_migrations (hash, created_at) VALUES ($1, $2)', [
    hash,
    folderMillis,
  ]);
}

async function inTransaction(client: pg.Client, run: () => Promise<void>): Promise<void> {
  await client.query('BEGIN');
  try {
    await run();
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

/**
 * Runs a step, and tries again while somebody else holds a lock that it needs. Each migration is a transaction of its
 * own: one may read a whole table without a lock that others wait for, and the next one locks it for a moment only.
 */
async function whenUnlocked(
  client: pg.Client,
  onLocked: (sentence: string) => void,
  run: () => Promise<unknown>,
): Promise<void> {
  for (let tries = 1; ; tries += 1)
    try {
      await run();
      return;
    } catch (error) {
      const isLocked = error instanceof pg.DatabaseError && error.code === LOCK_NOT_AVAILABLE;
      if (!isLocked) throw error;
      const sentence = `a table is locked${await describeHolder(client, OF_TABLES)}`;
      if (tries === LOCK_TRIES_MAX)
        throw new MigrationError(`A migration could not begin, and those after it are missing: ${sentence}`, {
          cause: error,
        });
      onLocked(`try ${tries} of ${LOCK_TRIES_MAX}: ${sentence}`);
      await delay(LOCK_PAUSE_MS);
    }
}

async function describeHolder(client: pg.Client, locks: string): Promise<string> {
  const { rows } = await client.query<{ pid: number; name: string; seconds: number | null }>(lockHolder(locks));
  const [holder] = rows;
  if (!holder) return '.';
  const { pid, name, seconds } = holder;
  const age = seconds === null ? '' : ` since ${seconds} s`;
  return `. Process ${pid} (${name || 'without a name'}) holds locks${age}: SELECT pg_terminate_backend(${pid}) ends it.`;
}

/**
 * A database from before the first release was made by other migrations, and nothing leads from them to these.
 *
 * @returns how many are applied
 */
async function refuseOtherMigrations(client: pg.Client): Promise<number> {
  const { rows } = await client.query(`SELECT FROM pg_tables WHERE schemaname = 'drizzle'`);
  if (rows.length === 0) return 0;
  const applied = await client.query<{ hash: string }>(
    'SELECT hash FROM drizzle.__drizzle_migrations ORDER BY created_at',
  );
  const isOther = ownMigrations().some(({ hash }, index) => (applied.rows[index]?.hash ?? hash) !== hash);
  if (isOther)
    throw new MigrationError(
      'Other migrations made this database, and nothing leads from them to these: begin with an empty one ("npm run reset" for the stack of npm start).',
    );
  return applied.rows.length;
}

function explainRefusal(migrationUrl: string, error: unknown): never {
  if (!(error instanceof pg.DatabaseError) || error.code !== INSUFFICIENT_PRIVILEGE) throw error;
  throw new MigrationError(
    `The role "${roleOf(migrationUrl)}" does not own the tables: set MIGRATION_DATABASE_URL to the address of their ` +
      'owner (docs/operations.md, "Database roles").',
    { cause: error },
  );
}

/** The name of the role that a database's address names. */
const roleOf = (databaseUrl: string): string => decodeURIComponent(new URL(databaseUrl).username);
