/**
 * What the service's role may do, on a database that was migrated as it is deployed: its owner is an ordinary role, and
 * the service's role is another one.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { execa } from 'execa';
import pg from 'pg';
import { test as base, describe, expect } from 'vitest';
import { connect } from '../../db/client.ts';
import { type DatabaseUrls, migrate } from '../../db/migrate.ts';
import { listServicePrivileges } from '../../db/privilege.ts';
import { findRoleFault } from '../../db/role.ts';
import { EXIT } from '../../ops/command-line/program.ts';
import { withCommandErrors } from '../../ops/failure.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { FILE } from '../support/fixture.ts';
import { testServer } from '../support/postgres.ts';
import { testPrograms } from '../support/program.ts';
import { words } from '../support/words.ts';

/** SQLSTATE: permission denied, and not the owner. */
const INSUFFICIENT_PRIVILEGE = '42501';
const LISTED = listServicePrivileges();
const PERMANENT = LISTED.filter((listed) => !listed.delete && listed.update !== 'all' && listed.update.length < 4);

type Deployed = DatabaseUrls & { readonly service: pg.Pool; readonly owner: pg.Pool; readonly superuserUrl: string };

const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('database', FILE, async ({}, { onCleanup }): Promise<Deployed> => {
    const { serverUrl } = await testServer();
    const name = `deployed_${randomUUID().replaceAll('-', '')}`;
    const admin = new pg.Pool({ connectionString: `${serverUrl}/postgres`, max: 1 });
    for (const role of [`${name}_owner`, `${name}_service`])
      await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD '${name}'`);
    await admin.query(`CREATE DATABASE ${name} OWNER ${name}_owner`);
    const urlOf = (role: string): string => {
      const url = new URL(name, serverUrl);
      return Object.assign(url, { username: `${name}_${role}`, password: name }).href;
    };
    const urls = { databaseUrl: urlOf('service'), migrationUrl: urlOf('owner') };
    await migrate(urls);
    const open = (connectionString: string): pg.Pool =>
      // Its connections end with the database.
      new pg.Pool({ connectionString, max: 1 }).on('error', () => undefined);
    const [service, owner] = [open(urls.databaseUrl), open(urls.migrationUrl)];
    onCleanup(async () => {
      await Promise.all([service.end(), owner.end()]);
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.query(`DROP ROLE ${name}_owner, ${name}_service`);
      await admin.end();
    });
    return { ...urls, service, owner, superuserUrl: `${serverUrl}/${name}` };
  });

/** Each table, sequence and privilege of the role, and of PUBLIC, which every role belongs to. */
async function grantedTo(owner: pg.Pool, role: string): Promise<Set<string>> {
  const { rows } = await owner.query<{ granted: string }>(
    `SELECT nspname || '.' || relname || ' ' || privilege_type AS granted
       FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace, aclexplode(relacl)
       WHERE nspname IN ('public', 'drizzle') AND grantee IN (0, $1::text::regrole)
     UNION ALL
     SELECT nspname || '.' || relname || ' ' || privilege_type || ' ' || attname
       FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace,
         aclexplode(attacl)
       WHERE nspname IN ('public', 'drizzle') AND grantee IN (0, $1::text::regrole)`,
    [role],
  );
  return new Set(rows.map(({ granted }) => granted));
}

describe('the list of privileges', () => {
  test('has every table of the database: add a new one to db/privilege.ts', async ({ database }) => {
    const { rows } = await database.owner.query<{ table: string }>(
      `SELECT nspname || '.' || relname AS table FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
       WHERE nspname IN ('public', 'drizzle') AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT relispartition`,
    );
    expect(new Set(rows.map(({ table }) => table))).toEqual(new Set(LISTED.map(({ table }) => table)));
  });

  test('is exactly what the role was granted, also by a second migration', async ({ database }) => {
    const { owner } = database;
    const role = new URL(database.databaseUrl).username;
    // A privilege that was granted by hand is taken back.
    await owner.query(
      `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}; GRANT UPDATE (amount_minor) ON postings TO ${role}`,
    );
    await migrate(database);
    const { rows: sequences } = await owner.query<{ granted: string }>(
      `SELECT 'public.' || relname || ' USAGE' AS granted FROM pg_class
       WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace`,
    );
    const tables = LISTED.flatMap(({ table, insert, update, delete: deletes }) => [
      `${table} SELECT`,
      ...(insert ? [`${table} INSERT`] : []),
      ...(deletes ? [`${table} DELETE`] : []),
      ...(update === 'all' ? [`${table} UPDATE`] : update.map((column) => `${table} UPDATE ${column}`)),
    ]);
    expect(await grantedTo(owner, role)).toEqual(new Set([...tables, ...sequences.map(({ granted }) => granted)]));
  });

  test('is not taken from a later version, whose processes still serve when an earlier one is migrated again', async ({
    database,
  }) => {
    const { owner } = database;
    const role = new URL(database.databaseUrl).username;
    await owner.query(
      `CREATE TABLE of_a_later_version ();
       GRANT SELECT ON of_a_later_version TO ${role};
       INSERT INTO drizzle.__drizzle_migrations (hash, created_at) VALUES ('of a later version', 9000000000000)`,
    );
    const before = await grantedTo(owner, role);
    await migrate(database);
    expect(await grantedTo(owner, role)).toEqual(before);
    await owner.query(
      `DROP TABLE of_a_later_version; DELETE FROM drizzle.__drizzle_migrations WHERE hash = 'of a later version'`,
    );
  });

  test('names each function that runs with the rights of the owner, and each has a search path of its own', async ({
    database,
  }) => {
    const { rows } = await database.owner.query<{
      callable: string;
      path: string;
      isOfService: boolean;
      isPublic: boolean;
    }>(
      `SELECT p.oid::regprocedure::text AS callable, array_to_string(p.proconfig, ',') AS path,
         has_function_privilege($1, p.oid, 'EXECUTE') AS "isOfService",
         EXISTS (SELECT FROM aclexplode(p.proacl) WHERE grantee = 0) OR p.proacl IS NULL AS "isPublic"
       FROM pg_proc p WHERE p.prosecdef AND p.prorettype <> 'trigger'::regtype ORDER BY 1`,
      [new URL(database.databaseUrl).username],
    );
    const path = 'search_path=pg_catalog, public, pg_temp';
    const onTables = `${path},lock_timeout=100ms`;
    const granted = { isOfService: true, isPublic: false };
    expect(rows).toEqual([
      { callable: 'add_partitions(integer)', path: onTables, ...granted },
      { callable: 'delete_expired_deliveries(integer,integer)', path, ...granted },
      { callable: 'delete_expired_events(integer,integer)', path, ...granted },
      { callable: 'drop_expired_partition(integer,integer)', path: onTables, ...granted },
    ]);
    const triggers = await database.owner.query(
      `SELECT proname FROM pg_proc WHERE prosecdef AND prorettype = 'trigger'::regtype AND proconfig IS DISTINCT FROM ARRAY[$1]`,
      [path],
    );
    expect(triggers.rows).toEqual([]);
  });

  test('makes journal, evidence, events, certificates, audit and history permanent', () => {
    const permanent = PERMANENT.map(({ table }) => table.replace('public.', ''));
    expect(permanent).toEqual(
      expect.arrayContaining([
        'audit_entries',
        'certificates',
        'events',
        'evidence',
        'idempotency_keys',
        'launch_gate_approvals',
        'launch_gate_evidence',
        'postings',
        'provider_events',
        'settlement_exceptions',
        'settlement_transitions',
      ]),
    );
  });
});

/** What was agreed on or decided once, beside ids, organizations and the times of creation. */
const AGREED: Readonly<Record<string, string>> = {
  api_keys: 'scope environment allowed_cidrs created_by',
  settlements: `
    origin corridor recipient_id payee_sealed payee_sha256 payment_method payout_rail amount_minor source_currency
    destination_amount_minor destination_currency rate_millionths input_fee_minor platform_fee_minor total_fees_minor
    reference metadata environment
  `,
  verifications: 'recipient_id subject_sealed subject_digest',
  webhook_deliveries: 'webhook_id event_id',
};

describe('the list of privileges lets no row change', () => {
  const updated = LISTED.flatMap(({ table, update }) =>
    update === 'all' ? [] : update.map((column) => `${table} ${column}`),
  );

  test('its id, its organization and when it was created', async ({ database }) => {
    const { rows } = await database.owner.query<{ column: string }>(
      `SELECT 'public.' || relname || ' ' || attname AS column
       FROM pg_class c JOIN pg_attribute ON attrelid = c.oid LEFT JOIN pg_index ON indrelid = c.oid AND indisprimary
       WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
         AND (attnum = ANY (indkey) OR attname IN ('org_id', 'created_at'))`,
    );
    expect(rows.length).toBeGreaterThan(60);
    expect(rows.filter(({ column }) => updated.includes(column))).toEqual([]);
  });

  test('what was agreed on', async ({ database }) => {
    const agreed = Object.entries(AGREED).flatMap(([table, columns]) =>
      words(columns).map((column) => `public.${table} ${column}`),
    );
    const { rows } = await database.owner.query<{ column: string }>(
      `SELECT 'public.' || table_name || ' ' || column_name AS column FROM information_schema.columns`,
    );
    expect(rows.map(({ column }) => column)).toEqual(expect.arrayContaining(agreed));
    expect(agreed.filter((column) => updated.includes(column))).toEqual([]);
  });
});

describe('permission is denied to the service', () => {
  const onTables = PERMANENT.flatMap(({ table, update }) => [
    `DELETE FROM ${table}`,
    `TRUNCATE ${table} CASCADE`,
    `ALTER TABLE ${table} DISABLE TRIGGER ALL`,
    `ALTER TABLE ${table} ADD COLUMN spare text`,
    `ALTER TABLE ${table} OWNER TO CURRENT_USER`,
    `DROP TABLE ${table} CASCADE`,
    `CREATE TRIGGER own BEFORE UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse_change()`,
    `CREATE RULE own AS ON INSERT TO ${table} DO INSTEAD NOTHING`,
    `DO $$ BEGIN LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE; END $$`,
    ...(update.length === 0 ? [`SELECT 1 FROM ${table} FOR UPDATE`] : []),
  ]);

  test.for(onTables)('denied: %s', async (statement, { database }) => {
    const refused = await database.service.query(statement).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: INSUFFICIENT_PRIVILEGE });
  });

  test('no update of any column of a permanent table but those of the list', async ({ database }) => {
    const { rows } = await database.owner.query<{ table: string; column: string }>(
      `SELECT table_schema || '.' || table_name AS table, column_name AS column FROM information_schema.columns
       WHERE table_schema IN ('public', 'drizzle')`,
    );
    const closed = PERMANENT.flatMap(({ table, update }) =>
      rows.filter((row) => row.table === table && !update.includes(row.column)),
    );
    expect(closed.length).toBeGreaterThan(100);
    for (const { table, column } of closed)
      await expect(
        database.service.query(`UPDATE ${table} SET ${column} = ${column}`),
        `${table} ${column}`,
      ).rejects.toMatchObject({ code: INSUFFICIENT_PRIVILEGE });
  });

  test('no drop of any trigger, and there are some', async ({ database }) => {
    const { rows } = await database.owner.query<{ trigger: string }>(
      `SELECT format('%I ON %s', tgname, tgrelid::regclass) AS trigger FROM pg_trigger WHERE NOT tgisinternal`,
    );
    expect(rows.length).toBeGreaterThan(15);
    for (const { trigger } of rows)
      await expect(database.service.query(`DROP TRIGGER ${trigger}`), trigger).rejects.toMatchObject({
        code: INSUFFICIENT_PRIVILEGE,
      });
  });

  test.for([
    `SET session_replication_role = 'replica'`,
    'CREATE TABLE own (id text)',
    'CREATE TEMPORARY TABLE postings (id text)',
    'CREATE SCHEMA own',
    `CREATE FUNCTION own() RETURNS text LANGUAGE sql AS $$ SELECT '' $$`,
    `CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$`,
    'DROP FUNCTION refuse_change() CASCADE',
    'DROP INDEX certificates_settlement',
    `INSERT INTO settlement_transition_rules VALUES ('settled', 'funded')`,
    'DELETE FROM drizzle.__drizzle_migrations',
    `INSERT INTO settlement_metadata SELECT * FROM settlement_metadata`,
    'DELETE FROM recipient_metadata',
    `SELECT setval('evidence_position_seq', 1)`,
    'DROP SCHEMA public CASCADE',
    'ALTER ROLE CURRENT_USER SUPERUSER',
    'CREATE ROLE own',
  ])('denied: %s', async (statement, { database }) => {
    const answer = await database.service.query(statement).catch((error: unknown) => error);
    expect(answer).toMatchObject({ code: INSUFFICIENT_PRIVILEGE });
  });

  test('no change to the role of the owner', async ({ database }) => {
    const owner = new URL(database.migrationUrl).username;
    await expect(database.service.query(`SET ROLE ${owner}`)).rejects.toMatchObject({ code: INSUFFICIENT_PRIVILEGE });
  });
});

describe('a process of a remote runtime', () => {
  const open = (url: string) =>
    connect(url, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined, refusesOwner: true });

  test.for(['migrationUrl', 'superuserUrl'] as const)(
    'does not start with %s, and no statement runs with it',
    async (name, { database }) => {
      const connection = open(database[name]);
      expect(await findRoleFault(connection.pool)).toMatch(/owns the database or its tables/);
      await expect(connection.pool.query('SELECT 1')).rejects.toThrow(/owns the database or its tables/);
      await connection.close();
    },
  );

  // The worker opens its connections as the API does: test/db/service-key.test.ts starts it.
  test.for(['api', 'ops'] as const)(
    'exits, as %s does, in one sentence and without the password',
    async (program, { database }) => {
      const secret = () => randomBytes(32).toString('hex');
      const key = () => `test-1:${randomBytes(32).toString('base64')}`;
      const { exitCode, all } = await execa('node', [(await testPrograms())[program], 'waiting'], {
        cwd: repositoryRoot,
        env: {
          RUNTIME_ENVIRONMENT: 'production',
          TRUSTED_PROXIES: 'none',
          DATABASE_URL: database.migrationUrl,
          PORT: '0',
          API_KEY_PEPPER: secret(),
          ENCRYPTION_KEYS: key(),
          CERTIFICATE_SIGNING_KEY: key(),
          CARDPROC_WEBHOOK_SECRET: secret(),
          BANKLEDGER_WEBHOOK_SECRET: secret(),
          IDVERIFY_WEBHOOK_SECRET: secret(),
        },
        reject: false,
        all: true,
      });
      expect([exitCode, all.trim().split('\n').length]).toEqual([78, 1]);
      const { username, password } = new URL(database.migrationUrl);
      if (program === 'api') expect(JSON.parse(all)).toMatchObject({ msg: 'the configuration is refused' });
      expect(program === 'api' ? JSON.parse(all).faults[0] : all).toContain(
        `The role "${username}" of DATABASE_URL owns the database or its tables`,
      );
      expect(all).not.toContain(`:${password}@`);
    },
  );

  test('starts as the service, and while the database does not answer', async ({ database }) => {
    const unreachable = new URL(database.migrationUrl);
    unreachable.port = '1';
    for (const url of [database.databaseUrl, unreachable.href]) {
      const connection = open(url);
      expect(await findRoleFault(connection.pool)).toBe(undefined);
      await connection.close();
    }
  });
});

const migrateAsCommand = (urls: DatabaseUrls) =>
  withCommandErrors(async () => {
    await migrate(urls);
    return EXIT.done;
  });

test('a migration for a role that does not exist fails in one sentence', async ({ database }) => {
  const databaseUrl = Object.assign(new URL(database.databaseUrl), { username: 'nobody_here' }).href;
  await expect(migrateAsCommand({ ...database, databaseUrl })).rejects.toMatchObject({
    exitCode: 1,
    message: 'The database has no role "nobody_here": create it (docs/operations.md, "Database roles").',
  });
});

test('a migration as a role that is not the owner fails in one sentence', async ({ database }) => {
  const { databaseUrl } = database;
  await expect(migrateAsCommand({ databaseUrl, migrationUrl: databaseUrl })).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(/^The role "\w+_service" does not own the tables: set MIGRATION_DATABASE_URL/),
  });
});
