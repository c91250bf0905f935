/** The migrations are written by hand. Here they are compared with db/schema, which the queries are typed by. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type pg from 'pg';
import { v7 } from 'uuid';
import { describe, expect, vi } from 'vitest';
import { migrate, migrationCount } from '../../db/migrate.ts';
import * as schema from '../../db/schema/index.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { digestTables } from '../support/database.ts';
import { withDatabase } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';

const META = path.join(repositoryRoot, 'db/migrations/meta');
/** The guards' own: db/schema does not declare them. */
const RULES = ['settlement_transition_rules', 'verification_transition_rules'];

/** How many migrations come before 0006, which builds and drops indexes, and changes a table. */
const BEFORE_ACCESS = 6;
/** How many come before those that divide tables into months. */
const BEFORE_MONTHS = 8;

const test = withDatabase(2);

/** What db/schema declares, made by drizzle-kit in a PostgreSQL schema of its own. */
async function makeDeclared(owner: pg.Pool): Promise<void> {
  const statements = await generateMigration(generateDrizzleJson({}), generateDrizzleJson(schema));
  const inDeclared = statements.map((statement) => statement.replaceAll('"public".', 'declared.'));
  await owner.query(
    ['CREATE SCHEMA declared', 'SET search_path = declared', ...inDeclared, 'RESET search_path'].join(';\n'),
  );
}

/** Each column, index and key of a PostgreSQL schema in one line, without the schema's name. */
async function factsOf(owner: pg.Pool, name: 'public' | 'declared'): Promise<string[]> {
  const { rows } = await owner.query<{ fact: string }>(
    `SELECT format('%s.%s %s%s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
         CASE WHEN a.attnotnull THEN ' not null' END, pg_get_expr(d.adbin, d.adrelid)) AS fact
       FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
       WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0
         AND c.relname <> ALL ($2)
     UNION ALL
     SELECT replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       WHERE c.relnamespace = $1::regnamespace AND NOT c.relispartition AND c.relname <> ALL ($2)
     UNION ALL
     SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(s.oid)) FROM pg_constraint s
       JOIN pg_class c ON c.oid = conrelid
       WHERE connamespace = $1::regnamespace AND contype IN ('p', 'u', 'f') AND NOT c.relispartition AND c.relname <> ALL ($2)`,
    [name, RULES],
  );
  return rows.map(({ fact }) => fact.replaceAll(/\b(public|declared)\./g, ''));
}

/** A database as the first migrations made it, and nothing more. */
async function migrateTo(owner: pg.Pool, count: number): Promise<void> {
  await owner.query('DROP SCHEMA public CASCADE; DROP SCHEMA IF EXISTS drizzle CASCADE; CREATE SCHEMA public');
  await owner.query(`CREATE SCHEMA drizzle;
    CREATE TABLE drizzle.__drizzle_migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)`);
  await applyMigrations(owner, 0, count);
}

/** Migrations alone, without what `migrate` does after them. */
async function applyMigrations(owner: pg.Pool, from: number, to?: number): Promise<void> {
  const all = readMigrationFiles({ migrationsFolder: path.dirname(META) });
  for (const { sql, hash, folderMillis } of all.slice(from, to)) {
    await owner.query(sql.join(';'));
    await owner.query('INSERT INTO drizzle.__drizzle_migrations (hash, created_at) VALUES ($1, $2)', [
      hash,
      folderMillis,
    ]);
  }
}

describe('the migrations and db/schema agree', () => {
  test('every column, index and key is the same; one more key holds the history to its rules', async ({ owner }) => {
    await makeDeclared(owner.pool);
    const [made, declared] = [await factsOf(owner.pool, 'public'), await factsOf(owner.pool, 'declared')];
    await owner.pool.query('DROP SCHEMA declared CASCADE');
    expect(declared.length).toBeGreaterThan(400);
    expect(declared.filter((fact) => !made.includes(fact))).toEqual([]);
    expect(made.filter((fact) => !declared.includes(fact))).toEqual([
      expect.stringContaining('settlement_transitions settlement_transitions_rule FOREIGN KEY'),
    ]);
  });

  test('one snapshot is enough: drizzle-kit has nothing to generate', async () => {
    const snapshots = readdirSync(META).filter((file) => file.endsWith('_snapshot.json'));
    expect(snapshots).toHaveLength(1);
    const snapshot = JSON.parse(readFileSync(path.join(META, snapshots[0] ?? ''), 'utf8'));
    expect(await generateMigration(snapshot, generateDrizzleJson(schema))).toEqual([]);
  });
});

test('an index of a missing migration is built while others write, and while another process waits to migrate', async ({
  database,
  owner,
}) => {
  await migrateTo(owner.pool, BEFORE_ACCESS);
  await owner.pool.query(
    `CREATE TABLE commands (text text);
     CREATE FUNCTION note_command() RETURNS event_trigger LANGUAGE plpgsql
       AS $$ BEGIN INSERT INTO commands VALUES (current_query()); END $$;
     CREATE EVENT TRIGGER note_command ON ddl_command_end WHEN TAG IN ('CREATE INDEX')
       EXECUTE FUNCTION note_command()`,
  );
  const writing = await owner.pool.connect();
  const write = `INSERT INTO outbox (kind, object_id, context, request_id) VALUES ('settlement', 'stl_1', '{}', 'test')`;
  await writing.query(`BEGIN; ${write}`);
  const migrated = Promise.all([migrate(database), migrate(database)]);
  const isWaiting = `SELECT FROM pg_stat_activity WHERE application_name = 'settlement-migrate' AND wait_event_type = 'Lock'
    AND datname = current_database()`;
  await vi.waitUntil(async () => (await owner.pool.query(isWaiting)).rowCount === 1, WAIT);
  await owner.pool.query(`SET lock_timeout = 1; ${write}; RESET lock_timeout`);
  await writing.query('COMMIT');
  writing.release();
  await migrated;
  const built = `SELECT to_regclass(name) IS NOT NULL AS built
    FROM unnest(ARRAY['outbox_first_due', 'webhook_deliveries_unclaimed']) AS name`;
  expect((await owner.pool.query(built)).rows).toEqual([{ built: true }, { built: true }]);
  const blocking = `SELECT text FROM commands WHERE text NOT LIKE 'CREATE INDEX CONCURRENTLY%' AND text LIKE '%IF NOT EXISTS%'`;
  expect((await owner.pool.query(blocking)).rows).toEqual([]);
  await owner.pool.query('DROP EVENT TRIGGER note_command');
});

test('a migration that waits for a table locks none of the tables whose indexes it changed', async ({
  database,
  owner,
}) => {
  await migrateTo(owner.pool, BEFORE_ACCESS);
  const writing = await owner.pool.connect();
  await writing.query('BEGIN; LOCK TABLE recipients IN ROW EXCLUSIVE MODE');
  const migrated = migrate(database);
  const locksWhileWaiting = `
    SELECT relation::regclass::text AS name, mode FROM pg_locks held
    WHERE granted AND relation >= 16384 AND mode LIKE '%Share%Lock' AND mode NOT IN ('AccessShareLock', 'RowExclusiveLock')
      AND pid IN (SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'recipients'::regclass)`;
  const waits = `SELECT FROM pg_locks WHERE NOT granted AND relation = 'recipients'::regclass`;
  try {
    await vi.waitUntil(async () => (await owner.pool.query(waits)).rowCount === 1, { ...WAIT, interval: 10 });
    expect((await owner.pool.query(locksWhileWaiting)).rows).toEqual([]);
  } finally {
    await writing.query('COMMIT');
    writing.release();
    await migrated;
  }
});

test('existing rows become the first partition, with their indexes, and later rows come into later partitions', async ({
  database,
  owner,
}) => {
  await migrateTo(owner.pool, BEFORE_MONTHS);
  const add = async (id: string): Promise<void> => {
    await owner.pool.query(
      `INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
       SELECT $1, org_id, 'settlement.settled', 'settlement', $1, 1, '{}', now() FROM organizations`,
      [id],
    );
  };
  await owner.pool.query(`INSERT INTO organizations (org_id, kind, name, country, contact_email, environment, created_at)
    VALUES ('org', 'partner', 'Acme', 'JM', 'dev@acme.example', 'local-sandbox', now())`);
  const filenode = `SELECT pg_relation_filenode(c.oid) AS node FROM pg_class c WHERE relname = $1`;
  const nodeOf = async (name: string) => (await owner.pool.query(filenode, [name])).rows[0]?.node;
  await add(v7());
  const before = await nodeOf('events_org_type');
  await migrate(database);
  expect(await nodeOf('events_org_type_first')).toBe(before);
  await add(v7({ msecs: Date.now() + 75 * 24 * 3_600_000 }));
  const { rows } = await owner.pool.query(
    `SELECT name, from_at IS NULL AS is_first, (SELECT count(*)::int FROM events WHERE tableoid = name::regclass) AS rows
     FROM partitions() WHERE table_name = 'events' ORDER BY to_at`,
  );
  expect(rows.map((row) => row.is_first)).toEqual(rows.map((_, index) => index === 0));
  expect(rows.reduce((sum, row) => sum + row.rows, 0)).toBe(2);
  expect(rows[0]).toEqual({ name: 'events_first', is_first: true, rows: 1 });
});

test('a running version keeps its privileges on the tables that are divided into months', async ({
  database,
  owner,
}) => {
  await migrateTo(owner.pool, BEFORE_MONTHS);
  const role = `released_${Date.now()}`;
  await owner.pool.query(`CREATE ROLE ${role}`);
  const privileges = `SELECT array_agg(name || ' ' || privilege) FILTER (WHERE has_table_privilege($1, name, privilege)) AS own
    FROM unnest(ARRAY['events', 'webhook_attempts', 'quotes']) name,
      unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege`;
  const own = async () => (await owner.pool.query(privileges, [role])).rows[0].own;
  await owner.pool.query(`GRANT SELECT, INSERT ON events, webhook_attempts, quotes TO ${role}`);
  const before = await own();
  expect(before).toContain('events INSERT');
  await applyMigrations(owner.pool, BEFORE_MONTHS);
  expect(await own()).toEqual(before);
  await migrate(database);
  await owner.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
});

test('a database that other migrations made is refused in one sentence, and stays as it is', async ({
  database,
  owner,
}) => {
  await migrate(database);
  await owner.pool.query(`UPDATE drizzle.__drizzle_migrations SET hash = 'other' WHERE id = 1`);
  const before = await digestTables(owner.pool);
  await expect(migrate(database)).rejects.toThrow(/^Other migrations made this database/);
  expect(await digestTables(owner.pool)).toEqual(before);
});

test('the last migration and the privileges of the service are one transaction, which waits for locks', async ({
  database,
  owner,
}) => {
  await migrateTo(owner.pool, migrationCount() - 1);
  const other = await owner.pool.connect();
  await other.query('BEGIN; GRANT SELECT ON recipients TO pg_monitor');
  let isLocked = false;
  const migrated = migrate(database, {
    onLocked: () => {
      isLocked = true;
    },
  });
  await Promise.race([vi.waitUntil(() => isLocked, WAIT), migrated]);
  const appliedCount = async () =>
    (await owner.pool.query('SELECT count(*)::int AS count FROM drizzle.__drizzle_migrations')).rows[0].count;
  expect(await appliedCount()).toBe(migrationCount() - 1);
  await other.query('ROLLBACK');
  other.release();
  await migrated;
  expect(await appliedCount()).toBe(migrationCount());
});

test('a migration that meets a lock says who holds it, lets others pass, and tries again until it succeeds', async ({
  database,
  owner,
}) => {
  await owner.pool.query('DROP SCHEMA public CASCADE; DROP SCHEMA drizzle CASCADE; CREATE SCHEMA public');
  const other = await owner.pool.connect();
  await other.query('BEGIN; CREATE SCHEMA drizzle');
  const isWaiting = async (): Promise<boolean> => {
    const { rowCount } = await owner.pool.query(
      `SELECT FROM pg_stat_activity
       WHERE application_name = 'settlement-migrate' AND datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rowCount === 1;
  };
  const said: string[] = [];
  const migrated = migrate(database, { onLocked: (sentence) => void said.push(sentence) });
  await vi.waitUntil(isWaiting, WAIT);
  await vi.waitUntil(async () => !(await isWaiting()), WAIT);
  await vi.waitUntil(() => said.length > 0, WAIT);
  const { rows: own } = await other.query('SELECT pg_backend_pid() AS pid');
  await other.query('ROLLBACK');
  other.release();
  await migrated;
  expect(said[0]).toMatch(
    new RegExp(
      `^try 1 of \\d+: a table is locked. Process ${own[0].pid} .* SELECT pg_terminate_backend.${own[0].pid}. ends it`,
    ),
  );
  const { rows } = await owner.pool.query('SELECT count(*)::int AS applied FROM drizzle.__drizzle_migrations');
  expect(rows).toEqual([{ applied: migrationCount() }]);
});

test('a migration that waits for another process says which one, and stops after its time', async ({
  database,
  owner,
}) => {
  const other = await owner.pool.connect();
  const { rows } = await other.query('SELECT pg_backend_pid() AS pid, pg_advisory_lock(7146301)');
  const said: string[] = [];
  const migrated = migrate(database, { onLocked: (sentence) => void said.push(sentence), waitTimeoutMs: 1_500 });
  const holder = `another process migrates. Process ${rows[0].pid} (test-owner) holds locks`;
  await expect(migrated).rejects.toThrow(holder);
  expect(said).toEqual([expect.stringContaining(holder)]);
  await other.query('SELECT pg_advisory_unlock(7146301)');
  other.release();
  await migrate(database);
});
