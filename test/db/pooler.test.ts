/** The service behind a real PgBouncer that pools transactions. */
import { test as base, describe, expect } from 'vitest';
import { connect, isUnavailable } from '../../db/client.ts';
import { findPoolerFault } from '../../db/database-session.ts';
import { migrate } from '../../db/migrate.ts';
import { claimOutbox } from '../../db/queries/outbox.ts';
import { settleByCard, signUp } from '../../scripts/sandbox/partner.ts';
import { queryOnce } from '../support/connection.ts';
import { FILE } from '../support/fixture.ts';
import { type PoolerOptions, startPooler, whyNoPooler } from '../support/pooler.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startStack } from '../support/stack.ts';

const missing = whyNoPooler();
const program = process.env['PGBOUNCER_PATH'] ?? '';

const test = base.extend(
  'database',
  FILE,
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  async ({}, { onCleanup }): Promise<TestDatabase> => {
    const database = await createTestDatabase();
    onCleanup(database.drop);
    return database;
  },
);

/** Runs with a pooler in front of the database. */
async function pooled<Result>(
  { databaseUrl, migrationUrl }: TestDatabase,
  run: (through: (databaseUrl: string) => string) => Promise<Result>,
  settings: PoolerOptions['settings'] = {},
): Promise<Result> {
  const pooler = await startPooler({ program, databaseUrls: [databaseUrl, migrationUrl], settings });
  try {
    return await run(pooler.through);
  } finally {
    await pooler.close();
  }
}

async function faultOf(databaseUrl: string, isPooled: boolean): Promise<string | undefined> {
  const connection = connect(databaseUrl, { poolSizeMax: 2, name: 'test', onIdleError: () => undefined, isPooled });
  try {
    return await findPoolerFault(connection.pool, isPooled);
  } finally {
    await connection.close();
  }
}

test('a direct connection is no pooler, and a database that does not answer is no reason not to start', async ({
  database: { databaseUrl },
}) => {
  expect(await faultOf(databaseUrl, false)).toBe(undefined);
  const nobody = Object.assign(new URL(databaseUrl), { port: '1' }).href;
  expect([await faultOf(nobody, false), await faultOf(nobody, true)]).toEqual([undefined, undefined]);
});

test('without a pooler, a role that has no limits is refused where DATABASE_LISTEN_URL says that there is one', async ({
  database: { databaseUrl },
}) => {
  expect(await faultOf(databaseUrl, true)).toMatch(/^the role of DATABASE_URL has no statement_timeout/);
});

test('a server that has one connection for the process gets it back, so that the process can use it', async ({
  database,
  onTestFinished,
}) => {
  const name = new URL(database.databaseUrl).pathname.slice(1);
  const allow = (count: number) => queryOnce(database.migrationUrl, `ALTER DATABASE ${name} CONNECTION LIMIT ${count}`);
  await allow(1);
  onTestFinished(async () => void (await allow(-1)));
  const options = { poolSizeMax: 2, name: 'test', onIdleError: () => undefined, isPooled: true };
  const { pool, close } = connect(database.databaseUrl, options);
  expect(await findPoolerFault(pool, true)).toBe(undefined);
  expect(pool.totalCount).toBe(0);
  await close();
});

test.for([
  ['of a direct connection', false],
  ['of a role that is migrated', true],
] as const)(
  'a session has the limits, plans and forms that the service relies on, whatever the database is set to: %s',
  async ([, isPooled], { onTestFinished }) => {
    const database = await createTestDatabase();
    onTestFinished(database.drop);
    const { databaseUrl, migrationUrl } = database;
    const { pathname } = new URL(databaseUrl);
    for (const setting of [`datestyle = 'SQL, DMY'`, `default_transaction_isolation = 'serializable'`])
      await queryOnce(migrationUrl, `ALTER DATABASE ${pathname.slice(1)} SET ${setting}`);
    await migrate(database);
    const connection = connect(databaseUrl, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined, isPooled });
    const read = `SELECT timestamptz '2026-02-01T00:00Z' AT TIME ZONE 'UTC' || '' AS time, ${[
      ...['transaction_isolation', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'],
      'random_page_cost',
    ].map((name) => `current_setting('${name}') AS ${name}`)}`;
    const { rows } = await connection.db.transaction((tx) => tx.execute(read));
    await connection.close();
    expect(rows).toEqual([
      {
        time: '2026-02-01 00:00:00',
        transaction_isolation: 'read committed',
        statement_timeout: '5s',
        lock_timeout: '3s',
        idle_in_transaction_session_timeout: '10s',
        random_page_cost: '1.1',
      },
    ]);
  },
);

test.for(['alone', 'in a transaction'])(
  'a statement that its session has lost, as behind a pooler that gives another one, fails once, and the next one succeeds: %s',
  async (how, { database: { databaseUrl } }) => {
    const connection = connect(databaseUrl, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
    const { db } = connection;
    const claim = () => (how === 'alone' ? claimOutbox(db, 1) : db.transaction((tx) => claimOutbox(tx, 1)));
    await claim();
    await db.execute('DEALLOCATE ALL');
    expect(isUnavailable(await claim().catch((error: unknown) => error))).toBe(true);
    expect(await claim()).toEqual([]);
    await connection.close();
  },
);

describe('behind PgBouncer', () => {
  test.beforeEach(({ skip }) => {
    if (missing !== undefined) skip(missing);
  });

  test.for([
    ['says nothing of a pooler', false, {}, 'DATABASE_URL leads to a pooler'],
    [
      'says nothing, and it ignores what it does not know',
      false,
      { ignore_startup_parameters: 'options' },
      'DATABASE_URL leads',
    ],
    [
      'has one without prepared statements',
      true,
      { max_prepared_statements: 0 },
      'the pooler of DATABASE_URL keeps no',
    ],
  ] as const)('a process is refused whose configuration %s', async ([, isPooled, settings, words], { database }) => {
    const fault = await pooled(database, (through) => faultOf(through(database.databaseUrl), isPooled), settings);
    expect(fault).toContain(words);
  });

  test('npm run migrate says that it needs a direct connection, and leaves no lock', async ({ database }) => {
    await pooled(database, async (through) => {
      const migrationUrl = through(database.migrationUrl);
      await expect(migrate({ ...database, migrationUrl })).rejects.toThrow(/^MIGRATION_DATABASE_URL leads to a pooler/);
    });
    await migrate(database);
  });

  test('a role without limits is refused until it is migrated, also while the pooler keeps its sessions', async ({
    database,
  }) => {
    const owner = connect(database.migrationUrl, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
    const { pathname, username } = new URL(database.databaseUrl);
    await owner.pool.query(`ALTER ROLE ${username} IN DATABASE ${pathname.slice(1)} RESET ALL`);
    await owner.close();
    await pooled(database, async (through) => {
      const fault = () => faultOf(through(database.databaseUrl), true);
      expect(await fault()).toMatch(/^the role of DATABASE_URL has no statement_timeout/);
      await migrate(database);
      expect(await fault()).toBe(undefined);
    });
  });

  test('the role has the limits once it is migrated, and a tenant waits for a lock as shortly as without one', async ({
    database,
  }) => {
    await migrate(database);
    await pooled(database, async (through) => {
      expect(await faultOf(through(database.databaseUrl), true)).toBe(undefined);
      const options = { poolSizeMax: 1, name: 'test', onIdleError: () => undefined, isPooled: true };
      const api = connect(through(database.databaseUrl), { ...options, tenants: { lockTimeoutMs: 250 } });
      const limits = `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock`;
      const { rows } = await api.db.execute(limits);
      expect(rows).toEqual([{ statement: '5s', lock: '3s' }]);
      expect((await api.db.transaction((tx) => tx.execute(limits))).rows).toEqual([{ statement: '5s', lock: '250ms' }]);
      expect((await api.db.execute(limits)).rows).toEqual(rows);
      await api.close();
    });
  });

  test('settlements settle by sessions that are shared, and their readers are told', async ({ database }) => {
    await migrate(database);
    const run = async (through: (databaseUrl: string) => string) => {
      const databaseUrl = through(database.databaseUrl);
      const pooledDatabase = { ...database, databaseUrl, listenUrl: database.databaseUrl, drop: async () => undefined };
      const stack = await startStack({ api: { database: pooledDatabase }, deliveries: true });
      const partner = await signUp({ baseUrl: stack.baseUrl });
      const ids = await Promise.all(Array.from({ length: 12 }, () => settleByCard(partner)));
      const ended = await Promise.all(ids.map((id) => partner.client.settlements.wait(id)));
      await stack.close();
      return ended.map(({ status }) => status);
    };
    // Fewer sessions than connections: each is shared.
    const statuses = await pooled(database, run, { default_pool_size: 4 });
    expect(new Set(statuses)).toEqual(new Set(['settled']));
    const owner = connect(database.migrationUrl, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
    const { rows } = await owner.db.execute('SELECT count(*)::int AS settled FROM settlements');
    await owner.close();
    expect(rows).toEqual([{ settled: 12 }]);
  });
});
