/** PostgreSQL's host vanishes: its connections stay open, and nothing is answered on them. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { createChangeListener } from '../../db/change-listener.ts';
import { type Connection, connect, isUnavailable } from '../../db/client.ts';
import { createReplicaReads } from '../../db/replica.ts';
import { withApi } from '../support/fixture.ts';
import { startForwarder } from '../support/forwarder.ts';
import { stretched, WAIT } from '../support/patience.ts';

const LIMIT_MS = 300;

/** `link` leads to PostgreSQL. `open` connects to an address as a process does, with one connection. */
const test = withApi()
  .extend('link', async ({ api }, { onCleanup }) => {
    const link = await startForwarder(Number(new URL(api.databaseUrl).port));
    onCleanup(link.close);
    const { href: url } = Object.assign(new URL(api.databaseUrl), { port: String(link.port) });
    return { ...link, url };
  })
  .extend('open', async ({ api: _ }, { onCleanup }) => {
    const opened: Connection[] = [];
    onCleanup(async () => {
      for (const { close } of opened) await close();
    });
    return (url: string): Connection => {
      const connection = connect(url, {
        ...{ poolSizeMax: 1, name: 'test', onIdleError: () => undefined, statementTimeoutMs: LIMIT_MS },
      });
      opened.push(connection);
      return connection;
    };
  });

describe('a statement that is not answered', () => {
  test.for<[string, (connection: Connection) => Promise<unknown>]>([
    ['alone', ({ db }) => db.execute(sql`SELECT 1`)],
    ['in a transaction', ({ db }) => db.transaction((tx) => tx.execute(sql`SELECT 1`))],
  ])('fails in time as unavailable, and the next one gets another connection: %s', async ([, run], { link, open }) => {
    const connection = open(link.url);
    await run(connection);
    link.disturb('cut');
    const startedMs = performance.now();
    const error = await run(connection).catch((thrown: unknown) => thrown);
    expect(isUnavailable(error), String(error)).toBe(true);
    expect(performance.now() - startedMs).toBeLessThan(stretched(5_000));
    expect(connection.pool.totalCount).toBe(0);
    link.heal();
    await run(connection);
  });
});

test('the connection for notifications is opened again when LISTEN is not answered, and its end waits for nobody', async ({
  api: _,
  onTestFinished,
}) => {
  let connections = 0;
  // Completes the start of a session, and answers nothing more.
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const errors: Error[] = [];
  const listener = createChangeListener(`postgresql://test@127.0.0.1:${port}/test`, 'settlement_changed', (error) =>
    errors.push(error),
  );
  listener.subscribe('one', () => undefined);
  await vi.waitUntil(() => connections === 2, WAIT);
  expect(errors.length).toBeGreaterThan(0);
  const startedMs = performance.now();
  await listener.close();
  expect(performance.now() - startedMs).toBeLessThan(stretched(1_000));
});

test('a list is answered by the primary while the replica is silent', async ({ api, link, open }) => {
  const [primary, replica] = [open(api.databaseUrl), open(link.url)];
  const faults: unknown[] = [];
  const readList = createReplicaReads({
    ...{ primary, replica, onAnswer: () => undefined, onFault: (error) => void faults.push(error) },
  });
  await replica.db.execute(sql`SELECT 1`);
  link.disturb('cut');
  const startedMs = performance.now();
  expect(await readList(async (db) => db === primary.db)).toBe(true);
  expect(performance.now() - startedMs).toBeLessThan(stretched(2_000));
  expect(faults).toHaveLength(1);
});
