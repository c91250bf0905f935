/** The connections of a process that serves tenants are given in turn, and none is held by who waits for a lock. */
import fastify from 'fastify';
import type pg from 'pg';
import { describe, expect, vi } from 'vitest';
import { LOW_PRIORITY, turn } from '../../api/plugins/turn.ts';
import { causeOf, connect, isUnavailable, TENANTS } from '../../db/client.ts';
import { createReplicaReads } from '../../db/replica.ts';
import { asProcess, asTenant, WAITING } from '../../db/tenant.ts';
import { DomainError, OwnBurstError } from '../../domain/error.ts';
import { PATIENCE_MS } from '../support/connection.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';

const SEATS = 2;
const OPTIONS = { poolSizeMax: SEATS, name: 'test', onIdleError: () => undefined, connectTimeoutMs: PATIENCE_MS };

const test = withDatabase()
  .extend('shared', FILE, ({ database }, { onCleanup }) => {
    const tenants = { ...TENANTS, turnTimeoutMs: PATIENCE_MS };
    const connection = connect(database.databaseUrl, { ...OPTIONS, tenants });
    onCleanup(connection.close);
    return connection;
  })
  .extend('holdSeats', ({ shared }, { onCleanup }) => async () => {
    const held = await Promise.all(Array.from({ length: SEATS }, () => asProcess(() => shared.pool.connect())));
    let isHeld = true;
    const release = () => {
      if (isHeld) for (const client of held) client.release();
      isHeld = false;
    };
    onCleanup(release);
    return release;
  });

const sleep = (pool: pg.Pool, tenant: string) => asTenant(tenant, () => pool.query('SELECT pg_sleep(0.01)'));
const refusal = { code: 'temporarily_unavailable' };

test('connections that are kept are open before a burst needs them, however long they are idle', async ({
  database,
}) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const kept = connect(database.databaseUrl, { ...OPTIONS, tenants: TENANTS, keepsOpen: true });
  try {
    await kept.openAll();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect([kept.pool.totalCount, kept.pool.idleCount]).toEqual([SEATS, SEATS]);
  } finally {
    vi.useRealTimers();
    await kept.close();
  }
});

test("a tenant's single statement waits for one of another tenant's burst", async ({ shared, holdSeats }) => {
  const release = await holdSeats();
  const done: string[] = [];
  const burst = Array.from({ length: 40 }, () => sleep(shared.pool, 'greedy').then(() => done.push('greedy')));
  const single = sleep(shared.pool, 'modest').then(() => done.push('modest'));
  expect(shared.waiting()).toBe(41);
  release();
  await Promise.all([...burst, single]);
  expect(done.indexOf('modest')).toBeLessThanOrEqual(SEATS + 1);
});

test('the statements of a request wait in the turn of its organization, its consumer or its address', async ({
  shared,
  holdSeats,
}) => {
  const callers: Readonly<Record<string, object>> = {
    greedy: { principal: { orgId: 'greedy' } },
    modest: { principal: { orgId: 'modest' } },
    consumer: { consumer: { orgId: 'consumer' } },
  };
  const clientAddress = { limitKey: '192.0.2.1' };
  const done: string[] = [];
  const app = fastify();
  for (const name of ['principal', 'consumer', 'clientAddress']) app.decorateRequest(name, null);
  app.addHook<{ Params: { who: string } }>('onRequest', async (request) => {
    Object.assign(request, { clientAddress }, callers[request.params.who]);
  });
  await app.register(turn, LOW_PRIORITY);
  app.get<{ Params: { who: string } }>('/:who', async ({ params: { who } }) => {
    await shared.pool.query('SELECT pg_sleep(0.01)');
    done.push(who);
  });
  const release = await holdSeats();
  const names = [...Array.from({ length: 40 }, () => 'greedy'), 'modest', 'consumer', 'address'];
  const asked = names.map(async (who) => await app.inject(`/${who}`));
  await vi.waitUntil(() => shared.waiting() === names.length, WAIT);
  release();
  await Promise.all(asked);
  await app.close();
  const places = ['modest', 'consumer', 'address'].map((who) => done.indexOf(who));
  expect(Math.max(...places)).toBeLessThan(20);
});

test('a tenant alone uses every connection', async ({ shared }) => {
  const held = await Promise.all(Array.from({ length: SEATS }, () => asTenant('alone', () => shared.pool.connect())));
  for (const client of held) client.release();
});

test('503 for the first statement beyond the limit of its tenant, and not for another tenant', async ({
  shared,
  holdSeats,
}) => {
  const release = await holdSeats();
  const waiting = Array.from({ length: WAITING.waitingMaxOfTenant }, () => sleep(shared.pool, 'greedy'));
  const refused = await sleep(shared.pool, 'greedy').catch((error: unknown) => error);
  expect(refused).toMatchObject(refusal);
  expect(refused).toBeInstanceOf(OwnBurstError);
  const other = sleep(shared.pool, 'modest');
  release();
  await Promise.all([...waiting, other]);
  expect(shared.waiting()).toBe(0);
});

test('503 for a statement beyond the limit of all tenants or of the process, which is not called the burst of its tenant', async ({
  shared,
  holdSeats,
  onTestFinished,
}) => {
  const release = await holdSeats();
  // To ask so often may take longer than a statement waits for its turn: that time stands still.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const ask = () => shared.pool.query('SELECT 1');
  const fill = (run: (ask: () => Promise<unknown>) => Promise<unknown>) =>
    Array.from({ length: WAITING.waitingMaxOfTenant }, () => run(ask));
  const waiting = fill(asProcess);
  const refused = [asProcess(ask)];
  for (let n = 1; n < WAITING.waitingMax / WAITING.waitingMaxOfTenant; n += 1)
    waiting.push(...fill((run) => asTenant(`tenant ${n}`, run)));
  refused.push(asTenant('modest', ask));
  const outcomes = await Promise.allSettled(refused);
  vi.useRealTimers();
  release();
  await Promise.all(waiting);
  for (const one of outcomes)
    expect(one).toMatchObject({ status: 'rejected', reason: { ...refusal, constructor: DomainError } });
});

test('503 for a statement that waits too long, which then begins no more', async ({ database }) => {
  const { pool, waiting, close } = connect(database.databaseUrl, { ...OPTIONS, poolSizeMax: 1, tenants: TENANTS });
  const held = await pool.connect();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const late = expect(sleep(pool, 'modest')).rejects.toMatchObject(refusal);
    vi.advanceTimersByTime(2_999);
    expect(waiting()).toBe(1);
    vi.advanceTimersByTime(1);
    await late;
  } finally {
    vi.useRealTimers();
  }
  expect(waiting()).toBe(0);
  held.release();
  await close();
});

test('work for all tenants does not wait in the turn of the one that began it', async ({ shared, holdSeats }) => {
  const release = await holdSeats();
  const done: string[] = [];
  const burst = Array.from({ length: 40 }, () => sleep(shared.pool, 'greedy').then(() => done.push('greedy')));
  const own = asTenant('greedy', () => asProcess(() => shared.pool.query('SELECT 1'))).then(() => done.push('process'));
  release();
  await Promise.all([...burst, own]);
  expect(done.indexOf('process')).toBeLessThanOrEqual(SEATS + 1);
});

test('what a list asks its servers does not wait in the turn of the one that began it', async ({
  shared,
  holdSeats,
}) => {
  const release = await holdSeats();
  const done: string[] = [];
  const readList = createReplicaReads({
    ...{ primary: shared, replica: shared, onAnswer: () => undefined, onFault: () => void done.push('asked') },
  });
  const burst = Array.from({ length: 40 }, () => sleep(shared.pool, 'greedy').then(() => done.push('greedy')));
  const list = asTenant('greedy', () => readList(async () => undefined));
  release();
  await Promise.all([...burst, list]);
  // Two questions, each in the turn of the process.
  expect(done.indexOf('asked')).toBeLessThanOrEqual(2 * (SEATS + 1));
});

test('who waits for a connection is counted without tenants too', async ({ database }) => {
  const { pool, waiting, close } = connect(database.databaseUrl, { ...OPTIONS, poolSizeMax: 1 });
  const held = await pool.connect();
  const asked = pool.query('SELECT 1');
  expect(waiting()).toBe(1);
  held.release();
  await asked;
  expect(waiting()).toBe(0);
  await close();
});

describe('a connection is given back', () => {
  test('and closed when it is of no more use', async ({ shared }) => {
    const client = await shared.pool.connect();
    const before = shared.pool.totalCount;
    client.release(true);
    expect(shared.pool.totalCount).toBe(before - 1);
  });

  test('after failed statements, transactions that were rolled back, and connections that broke', async ({
    shared,
    holdSeats,
  }) => {
    const { db, pool } = shared;
    for (let n = 0; n < 2 * SEATS; n += 1) {
      await expect(pool.query('SELECT 1/0')).rejects.toThrow('division by zero');
      await expect(db.transaction((tx) => tx.execute('SELECT 1/0'))).rejects.toThrow();
      await expect(pool.query('SELECT pg_terminate_backend(pg_backend_pid())')).rejects.toThrow();
    }
    (await holdSeats())();
  });

  test('that could not be opened', async () => {
    const gone = connect('postgresql://127.0.0.1:1/none', {
      ...{ poolSizeMax: 1, name: 'test', onIdleError: () => undefined },
      tenants: TENANTS,
    });
    for (let n = 0; n < 3; n += 1) await expect(gone.pool.query('SELECT 1')).rejects.toThrow('ECONNREFUSED');
    await gone.close();
  });
});

test('a statement gives up a lock after a quarter of a second', async ({ shared, owner }) => {
  const holder = await owner.pool.connect();
  await holder.query('BEGIN');
  await holder.query('SELECT pg_advisory_xact_lock(1)');
  const { rows } = await shared.pool.query('SHOW lock_timeout');
  const error = await shared.db.execute('SELECT pg_advisory_lock(1)').catch((thrown: unknown) => thrown);
  await holder.query('ROLLBACK');
  holder.release();
  expect(causeOf(error)).toMatchObject({ code: '55P03' });
  expect(isUnavailable(error)).toBe(true);
  expect(rows).toEqual([{ lock_timeout: '250ms' }]);
});
