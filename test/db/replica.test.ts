/** Lists of the API from a real streaming replica (db/replica.ts). */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { test as base, describe, expect, vi } from 'vitest';
import { type Connection, connect, type Database } from '../../db/client.ts';
import { migrate } from '../../db/migrate.ts';
import { createReplicaReads, type ListSource, type ReadList } from '../../db/replica.ts';
import { ensureDatabase, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { createTestApi } from '../support/api.ts';
import { queryOnce } from '../support/connection.ts';
import { FILE } from '../support/fixture.ts';
import { createRecipient, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { testServer } from '../support/postgres.ts';
import { type Standby, startStandby } from '../support/standby.ts';

const SETTINGS = { fsync: 'off', max_connections: '60' };
const LISTS = ['/v1/recipients', '/v2/settlements', '/v1/events', '/v1/usage?from=2026-01-01&to=2026-01-02'];

/** An answer that takes half a second is reported as another fault. A busy machine may take that long. */
const MAY_BE_LATE = { retry: 3 };

const onPort = (url: string, port: number): string => Object.assign(new URL(url), { port: String(port) }).href;

/** As the API does at its start: on a busy machine a first connection may take longer than a list waits. */
async function open(url: string): Promise<Connection> {
  const connection = connect(url, { poolSizeMax: 5, name: 'test-lists', onIdleError: () => undefined });
  await connection.openAll();
  return connection;
}

const onServer = ({ serverUrl }: { readonly serverUrl: string }, statement: string) =>
  queryOnce(`${serverUrl}/settlement`, statement);

/** A primary, its replica, and an API that reads lists by it. `sources`: who answered its lists so far. */
const test = base
  .extend(
    'servers',
    FILE,
    // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
    async ({}, { onCleanup }) => {
      const folder = await mkdtemp(path.join(os.tmpdir(), 'settlement-replica-'));
      await chmod(folder, 0o755);
      const ends = [() => rm(folder, { recursive: true, force: true })];
      onCleanup(async () => {
        for (const end of ends.toReversed()) await end();
      });
      const program = await postgresProgram(async () => folder);
      const directory = path.join(folder, 'primary');
      const primary = await startCluster({ program, directory, settings: SETTINGS });
      ends.push(primary.stop);
      const database = await ensureDatabase(primary, 'settlement');
      await migrate(database);
      const addStandby = async (name: string): Promise<Standby> => {
        const standby = await startStandby({
          ...{ program, serverUrl: primary.serverUrl, from: directory, to: path.join(folder, name) },
          ...{ port: primary.port, mode: 'asynchronous', name, settings: SETTINGS },
        });
        ends.push(standby.cluster.stop);
        return standby;
      };
      const { cluster: replica } = await addStandby('replica');
      return { primary, replica, database, addStandby };
    },
  )
  /** A standby that is the primary now. The replica still follows the old one, and has a table that the new one lacks. */
  .extend('promoted', FILE, async ({ servers: { primary, replica, addStandby } }) => {
    await onServer(primary, 'CREATE TABLE kept (i int); GRANT SELECT ON kept TO PUBLIC');
    const promoted = await addStandby('promoted');
    await onServer(promoted.cluster, `ALTER SYSTEM SET primary_conninfo = ''`);
    await onServer(promoted.cluster, 'SELECT pg_reload_conf()');
    const receivers = () => onServer(promoted.cluster, 'SELECT FROM pg_stat_wal_receiver');
    await vi.waitUntil(async () => (await receivers()).length === 0, WAIT);
    await onServer(primary, `CREATE TABLE lost AS SELECT repeat('x', 500) FROM generate_series(1, 2000)`);
    const isThere = async () => (await onServer(replica, `SELECT FROM pg_class WHERE relname = 'lost'`)).length === 1;
    await vi.waitUntil(isThere, WAIT);
    await promoted.promote();
    return promoted.cluster;
  })
  .extend('sources', FILE, (): ListSource[] => [])
  .extend('api', FILE, async ({ servers: { database, replica }, sources }, { onCleanup }) => {
    let readList: ReadList | undefined;
    const deps = { readList: ((run) => readList?.(run)) as ReadList };
    const api = await createTestApi({ database: { ...database, drop: async () => undefined }, deps });
    const connection = await open(onPort(database.databaseUrl, replica.port));
    onCleanup(async () => {
      await api.close();
      await connection.close();
    });
    const onAnswer = (source: ListSource): void => void sources.push(source);
    readList = createReplicaReads({ primary: api.connection, replica: connection, onAnswer, onFault: vi.fn() });
    return api;
  });

describe('a list', () => {
  test('from the replica has what its caller has just written', async ({ api, sources }) => {
    const partner = await api.createCaller();
    for (let n = 0; n < 30 || !sources.includes('replica'); n += 1) {
      const id = await createRecipient(api, partner);
      const [newest] = jsonOf(await api.call(partner, 'GET', '/v1/recipients?limit=1'));
      expect(newest.recipient_id).toBe(id);
    }
  });

  test.for(LISTS)('%s is read from the replica', async (url, { api, sources }) => {
    const partner = await api.createCaller();
    await vi.waitUntil(async () => {
      expect((await api.call(partner, 'GET', url)).statusCode).toBe(200);
      return sources.at(-1) === 'replica';
    }, WAIT);
  });

  test('is answered by the primary while the replica is late, and by the replica again after that', async ({
    api,
    servers,
    sources,
  }) => {
    const partner = await api.createCaller();
    await onServer(servers.replica, 'SELECT pg_wal_replay_pause()');
    const id = await createRecipient(api, partner);
    const read = async () => jsonOf(await api.call(partner, 'GET', '/v1/recipients'))[0]?.recipient_id;
    expect([await read(), sources.at(-1)]).toEqual([id, 'primary']);
    await onServer(servers.replica, 'SELECT pg_wal_replay_resume()');
    await vi.waitUntil(async () => (await read()) === id && sources.at(-1) === 'replica', WAIT);
  });

  test('whose read the replica cancels is answered by the primary', async ({ api }) => {
    const conflict = Object.assign(new pg.DatabaseError('canceling statement', 0, 'error'), { code: '40001' });
    const canceled = vi.fn().mockRejectedValue(conflict);
    const run = async (db: Database) => (db === api.connection.db ? 'read' : await canceled());
    // Until the replica is in time.
    await vi.waitUntil(async () => {
      expect(await api.deps.readList(run)).toBe('read');
      return canceled.mock.calls.length > 0;
    }, WAIT);
  });

  test('whose read fails for another reason is not read again', async ({ api }) => {
    const run = vi.fn().mockRejectedValue(new Error('its own'));
    await expect(api.deps.readList(run)).rejects.toThrow('its own');
    expect(run).toHaveBeenCalledOnce();
  });
});

test(
  'a replica that does not follow the promoted primary answers no list, and is reported once',
  MAY_BE_LATE,
  async ({ servers: { replica, database }, promoted, onTestFinished }) => {
    await onServer(promoted, 'DELETE FROM kept');
    const opening = [promoted, replica].map(({ port }) => open(onPort(database.databaseUrl, port)));
    const connections = await Promise.all(opening);
    onTestFinished(async () => {
      for (const { close } of connections) await close();
    });
    const [first = expect.unreachable(), second = expect.unreachable()] = connections;
    const [onFault, sources] = [vi.fn(), [] as ListSource[]];
    const onAnswer = (source: ListSource): void => void sources.push(source);
    const readList = createReplicaReads({ primary: first, replica: second, onAnswer, onFault });
    for (let i = 1; i <= 3; i += 1) {
      await onServer(promoted, `INSERT INTO kept VALUES (${i})`);
      expect((await readList((db) => db.execute('SELECT i FROM kept'))).rows).toHaveLength(i);
    }
    expect(sources).toEqual(['primary', 'primary', 'primary']);
    expect(onFault.mock.calls.map(([error]) => error.message)).toEqual([
      'DATABASE_READ_URL leads to a server that does not follow the primary on its timeline 2',
    ]);
  },
);

test.for([
  ['another database of the same server', (databaseUrl: string) => databaseUrl],
  ['another server, such as the one before a move', async () => (await testServer()).serviceUrl],
] as const)(
  'a replica of %s answers no list, and is reported once',
  MAY_BE_LATE,
  async ([_, primaryUrlOf], { servers, onTestFinished }) => {
    const inPostgres = (url: string): string => Object.assign(new URL(url), { pathname: '/postgres' }).href;
    const { databaseUrl } = servers.database;
    const replicaUrl = inPostgres(onPort(databaseUrl, servers.replica.port));
    const primaryUrl = await primaryUrlOf(databaseUrl);
    const first = await open(primaryUrl === databaseUrl ? primaryUrl : inPostgres(primaryUrl));
    const second = await open(replicaUrl);
    onTestFinished(async () => {
      await first.close();
      await second.close();
    });
    const [onFault, sources] = [vi.fn(), [] as ListSource[]];
    const onAnswer = (source: ListSource): void => void sources.push(source);
    const readList = createReplicaReads({ primary: first, replica: second, onAnswer, onFault });
    for (let n = 0; n < 3; n += 1) await readList(async () => n);
    expect(sources).toEqual(['primary', 'primary', 'primary']);
    expect(onFault.mock.calls.map(([error]) => error.message)).toEqual([
      'DATABASE_READ_URL leads to another database than DATABASE_URL, or to a copy of it',
    ]);
  },
);

describe('a server that is no replica', () => {
  test('answers no list, and is reported once', MAY_BE_LATE, async ({ api, servers: { database } }) => {
    const promoted = await open(database.databaseUrl);
    const [onFault, sources] = [vi.fn(), [] as ListSource[]];
    const onAnswer = (source: ListSource): void => void sources.push(source);
    const readList = createReplicaReads({ primary: api.connection, replica: promoted, onAnswer, onFault });
    try {
      for (let n = 0; n < 3; n += 1) await readList(async () => n);
      expect(sources).toEqual(['primary', 'primary', 'primary']);
      expect(onFault.mock.calls.map(([error]) => error.message)).toEqual(['DATABASE_READ_URL leads to no replica']);
    } finally {
      await promoted.close();
    }
  });

  test('because it was stopped, fails no list', async ({ api, servers, sources }) => {
    const partner = await api.createCaller();
    await servers.replica.stop();
    for (const url of LISTS) expect((await api.call(partner, 'GET', url)).statusCode).toBe(200);
    expect(sources.slice(-LISTS.length)).toEqual(LISTS.map(() => 'primary'));
  });
});

test('a replica that fails is not asked for five seconds, then tried again, and each series of failures is reported once', async ({
  onTestFinished,
}) => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const serverOf = (query: () => Promise<unknown>) => ({ pool: { query } }) as unknown as Connection;
  const progress = { rows: [{ database: '1/settlement', position: '5', timeline: 1 }] };
  const [onFault, sources] = [vi.fn(), [] as ListSource[]];
  const onAnswer = (source: ListSource): void => void sources.push(source);
  const server: { isDown: boolean } = { isDown: false };
  const asked = vi.fn(async () => {
    if (server.isDown) throw new Error('down');
    return progress;
  });
  const [primary, replica] = [serverOf(async () => progress), serverOf(asked)];
  const readList = createReplicaReads({ primary, replica, onAnswer, onFault });
  const seenAfter = async (passedMs: number) => {
    vi.advanceTimersByTime(passedMs);
    await readList(async () => undefined);
    return [sources.at(-1), asked.mock.calls.length, onFault.mock.calls.length];
  };
  expect(await seenAfter(0)).toEqual(['replica', 1, 0]);
  server.isDown = true;
  expect(await seenAfter(0)).toEqual(['primary', 2, 1]);
  expect(await seenAfter(4_999)).toEqual(['primary', 2, 1]);
  expect(await seenAfter(1)).toEqual(['primary', 3, 1]);
  server.isDown = false;
  expect(await seenAfter(5_000)).toEqual(['replica', 4, 1]);
  server.isDown = true;
  expect(await seenAfter(0)).toEqual(['primary', 5, 2]);
});

test('a replica whose reads fail, or are not answered in time, is not read for five seconds, and is reported once', async ({
  onTestFinished,
}) => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const progress = { rows: [{ database: '1/settlement', position: '5', timeline: 1 }] };
  const serverOf = (name: string) => ({ pool: { query: async () => progress }, db: name }) as unknown as Connection;
  const [primary, replica, onFault] = [serverOf('primary'), serverOf('replica'), vi.fn()];
  const readList = createReplicaReads({ primary, replica, onAnswer: vi.fn(), onFault });
  const silent = new Error('Query read timeout');
  const conflict = Object.assign(new pg.DatabaseError('canceling statement', 0, 'error'), { code: '40001' });
  const failing = new Map<Database, Error>();
  const run = vi.fn(async (db: Database) => {
    const failure = failing.get(db);
    if (failure) throw failure;
    return 'read';
  });
  const readAfter = async (passedMs: number) => {
    vi.advanceTimersByTime(passedMs);
    run.mockClear();
    await readList(run).catch((error: unknown) => expect(error).toBe(silent));
    return [...run.mock.calls.map(([db]) => db), onFault.mock.calls.length];
  };
  failing.set(replica.db, silent);
  expect(await readAfter(0)).toEqual(['replica', 'primary', 1]);
  expect(await readAfter(4_999)).toEqual(['primary', 1]);
  expect(await readAfter(1)).toEqual(['replica', 'primary', 1]);
  failing.clear();
  expect(await readAfter(5_000)).toEqual(['replica', 1]);
  // What it replays has ended a read.
  failing.set(replica.db, conflict);
  for (let read = 0; read < 2; read += 1) expect(await readAfter(0)).toEqual(['replica', 'primary', 1]);
  // A list that takes too long wherever it is read.
  failing.set(primary.db, silent).set(replica.db, silent);
  for (let read = 0; read < 2; read += 1) expect(await readAfter(0)).toEqual(['replica', 'primary', 1]);
  failing.delete(primary.db);
  expect(await readAfter(0)).toEqual(['replica', 'primary', 2]);
});

test('a list does not wait for a replica if another list waited for it in vain within the last second', async ({
  onTestFinished,
}) => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const at = (position: string) => ({ rows: [{ database: '1/settlement', position, timeline: 1 }] });
  const serverOf = (query: () => Promise<unknown>) => ({ pool: { query } }) as unknown as Connection;
  const replayed = { position: '4' };
  const asked = vi.fn(async () => {
    vi.advanceTimersByTime(50);
    return at(replayed.position);
  });
  const [primary, replica] = [serverOf(async () => at('5')), serverOf(asked)];
  const [onFault, sources] = [vi.fn(), [] as ListSource[]];
  const onAnswer = (source: ListSource): void => void sources.push(source);
  const readList = createReplicaReads({ primary, replica, onAnswer, onFault });
  const readAfter = async (passedMs: number) => {
    vi.advanceTimersByTime(passedMs);
    asked.mockClear();
    await readList(async () => undefined);
    return [sources.at(-1), asked.mock.calls.length];
  };
  expect(await readAfter(0)).toEqual(['primary', 2]);
  expect(await readAfter(0)).toEqual(['primary', 0]);
  replayed.position = '5';
  expect(await readAfter(999)).toEqual(['primary', 0]);
  expect(await readAfter(1)).toEqual(['replica', 1]);
  expect(onFault).not.toHaveBeenCalled();
});
