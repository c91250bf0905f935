/** PostgreSQL's host vanishes: its connections stay open, and nothing is answered on them. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { createChangeListener } from '../../db/change-listener.ts';
import { CONNECT_TIMEOUT_MS, type Connection, connect, isUnavailable } from '../../db/client.ts';
import { createReplicaReads } from '../../db/replica.ts';
import { PATIENCE_MS } from '../support/connection.ts';
import { withApi } from '../support/fixture.ts';
import { startForwarder } from '../support/forwarder.ts';
import { stretched, WAIT } from '../support/patience.ts';

/** For a statement that begins while the server is silent. */
const LIMIT_MS = 300;

/** `link` leads to PostgreSQL. `open` connects to an address as a process does, with one connection. */
const test = withApi()
  .extend('link', async ({ api }, { onCleanup }) => {
    const link = await startForwarder(Number(new URL(api.databaseUrl).port));
    // A server that answers has time: a busy machine may take longer than the limit for a connection and its statement.
    let isSilent = false;
    const setTimeoutNow = setTimeout;
    const timers = vi
      .spyOn(globalThis, 'setTimeout')
      .mockImplementation(((run: () => void, ms?: number) =>
        setTimeoutNow(run, ms === LIMIT_MS && !isSilent ? PATIENCE_MS : ms)) as typeof setTimeout);
    onCleanup(async () => {
      timers.mockRestore();
      await link.close();
    });
    const cut = (): void => {
      isSilent = true;
      link.disturb('cut');
    };
    const heal = (): void => {
      isSilent = false;
      link.heal();
    };
    const { href: url } = Object.assign(new URL(api.databaseUrl), { port: String(link.port) });
    return { cut, heal, url };
  })
  .extend('open', async ({ api: _ }, { onCleanup }) => {
    const opened: Connection[] = [];
    onCleanup(async () => {
      for (const { close } of opened) await close();
    });
    return (url: string, statementTimeoutMs = LIMIT_MS, poolSizeMax = 1): Connection => {
      const connection = connect(url, {
        ...{ poolSizeMax, name: 'test', onIdleError: () => undefined, statementTimeoutMs, keepsOpen: true },
      });
      opened.push(connection);
      return connection;
    };
  });

describe('a statement that is not answered', () => {
  test.for<[string, (connection: Connection, cut: () => void) => Promise<unknown>]>([
    [
      'alone',
      ({ db }, cut) => {
        cut();
        return db.execute(sql`SELECT 1`);
      },
    ],
    [
      'the first of a transaction',
      ({ db }, cut) => {
        cut();
        return db.transaction((tx) => tx.execute(sql`SELECT 1`));
      },
    ],
    [
      'the next one of a transaction',
      ({ db }, cut) =>
        db.transaction(async (tx) => {
          await tx.execute(sql`SELECT 1`);
          cut();
          await tx.execute(sql`SELECT 1`);
        }),
    ],
  ])('fails in time as unavailable, and the next one gets another connection: %s', async ([, run], { link, open }) => {
    const connection = open(link.url);
    await run(connection, () => undefined);
    const startedMs = performance.now();
    const error = await run(connection, link.cut).catch((thrown: unknown) => thrown);
    expect(isUnavailable(error), String(error)).toBe(true);
    expect(performance.now() - startedMs).toBeLessThan(stretched(5_000));
    expect(connection.pool.totalCount).toBe(0);
    link.heal();
    await run(connection, () => undefined);
  });
});

test.for<[string, (connection: Connection) => Promise<unknown>]>([
  ['alone', ({ db }) => db.execute(sql`SELECT 1`)],
  ['in a transaction', ({ db }) => db.transaction((tx) => tx.execute(sql`SELECT 1`))],
])('idle connections are closed after a statement that is not answered: %s', async ([, run], { link, open }) => {
  const connection = open(link.url, LIMIT_MS, 5);
  await connection.openAll();
  link.cut();
  await expect(run(connection)).rejects.toThrow();
  await vi.waitUntil(() => connection.pool.totalCount === 0, WAIT);
});

test('a connection that is taken while the idle ones are closed stays usable', async ({ link, open }) => {
  const { pool, openAll } = open(link.url, LIMIT_MS, 2);
  await openAll();
  const used = await pool.connect();
  const taking = pool.connect();
  pool.emit('release', new Error('Query read timeout'), used);
  const taken = await taking;
  // Longer than a connection is waited for.
  await delay(CONNECT_TIMEOUT_MS + 500);
  expect((await taken.query('SELECT 1')).rowCount).toBe(1);
  for (const client of [used, taken]) client.release();
});

test('a server that only reads, as after a failover, is left: the next statement gets another connection', async ({
  api,
  open,
}) => {
  const { db, pool } = open(api.databaseUrl, PATIENCE_MS);
  const processOf = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
  const before = await processOf();
  await pool.query('SET default_transaction_read_only = on');
  // Drizzle keeps the connection of a transaction that fails.
  const writing = db.transaction((tx) => tx.execute(sql`CREATE TEMP TABLE one (i int)`));
  expect(isUnavailable(await writing.catch((error: unknown) => error))).toBe(true);
  expect(await processOf()).not.toBe(before);
});

describe('the connection for notifications', () => {
  /** How far a session goes before its connection ends: it begins, or it listens. `silent`: it begins, and stays. */
  type Session = 'begins' | 'listens' | 'silent' | 'stays';
  const READY = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1');
  const LISTENING = Buffer.from('C\0\0\0\x0bLISTEN\0Z\0\0\0\x05I', 'latin1');
  const notification = (payload: string): Buffer => {
    const body = Buffer.from(`\0\0\0\x01settlement_changed\0${payload}\0`, 'latin1');
    const head = Buffer.from('A\0\0\0\0', 'latin1');
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };

  /** A server with these sessions, one after the other, and a listener on it. `open`: the connections that it has. */
  async function serve(sessions: readonly Session[], onTestFinished: (end: () => void) => void) {
    const [open, errors] = [new Set<Socket>(), [] as Error[]];
    const counts = { connections: 0, listening: 0 };
    const server = createServer((socket) => {
      const session = sessions[counts.connections] ?? sessions.at(-1);
      counts.connections += 1;
      open.add(socket.on('close', () => open.delete(socket)).on('error', () => undefined));
      socket.once('data', () => {
        socket.write(READY);
        socket.once('data', () => {
          if (session === 'silent') return;
          if (session === 'begins') return socket.destroy();
          socket.write(LISTENING);
          counts.listening += 1;
          return session === 'listens' ? void socket.end() : undefined;
        });
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const listener = createChangeListener(`postgresql://test@127.0.0.1:${port}/test`, 'settlement_changed', (error) =>
      errors.push(error),
    );
    onTestFinished(() => {
      void listener.close();
      for (const socket of open) socket.destroy();
      server.close();
    });
    return { listener, counts, open, errors };
  }

  test('is opened again when LISTEN is not answered, the old one is closed, and its end waits for nobody', async ({
    onTestFinished,
  }) => {
    const { listener, counts, open, errors } = await serve(['silent'], onTestFinished);
    listener.subscribe('one', () => undefined);
    await vi.waitUntil(() => counts.connections === 2 && open.size === 1, WAIT);
    expect(errors).toHaveLength(1);
    const startedMs = performance.now();
    await listener.close();
    expect(performance.now() - startedMs).toBeLessThan(stretched(1_000));
  });

  test('wakes who waits for the subject of a notification, until it waits no more, and ends without an error', async ({
    onTestFinished,
  }) => {
    const { listener, counts, open, errors } = await serve(['stays'], onTestFinished);
    const [own, other, gone] = [vi.fn(), vi.fn(), vi.fn()];
    const leave = listener.subscribe('one', gone);
    listener.subscribe('one', own);
    listener.subscribe('two', other);
    await vi.waitUntil(() => counts.listening === 1, WAIT);
    leave();
    const [socket] = open;
    socket?.write(notification('one'));
    await vi.waitUntil(() => own.mock.calls.length === 1, WAIT);
    expect([other, gone].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
    await listener.close();
    await vi.waitUntil(() => open.size === 0, WAIT);
    // Its own end arrives after that of its connection.
    await delay(50);
    expect(errors).toEqual([]);
  });

  test('is reported when it breaks, and not again before it was open', async ({ onTestFinished }) => {
    const sessions = ['listens', 'begins', 'listens', 'stays'] as const;
    const { listener, counts, errors } = await serve(sessions, onTestFinished);
    listener.subscribe('one', () => undefined);
    await vi.waitUntil(() => counts.connections === sessions.length, WAIT);
    expect(errors).toHaveLength(2);
  });
});

test('a list is answered by the primary while the replica is silent', async ({ api, link, open }) => {
  // A statement of the replica alone would take longer than a list may wait for it.
  const replicaMs = stretched(10 * LIMIT_MS);
  const [primary, replica] = [open(api.databaseUrl, PATIENCE_MS), open(link.url, replicaMs)];
  const faults: unknown[] = [];
  const readList = createReplicaReads({
    ...{ primary, replica, onAnswer: () => undefined, onFault: (error) => void faults.push(error) },
  });
  await replica.db.execute(sql`SELECT 1`);
  link.cut();
  const startedMs = performance.now();
  expect(await readList(async (db) => db === primary.db)).toBe(true);
  expect(performance.now() - startedMs).toBeLessThan(replicaMs);
  expect(faults).toHaveLength(1);
});
