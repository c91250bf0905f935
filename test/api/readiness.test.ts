/**
 * An overloaded process, and what makes the service not ready: a database that is missing, behind or only reads, and a
 * clock that is wrong.
 */
import { setTimeout as delay } from 'node:timers/promises';
import fastify from 'fastify';
import { expect, vi } from 'vitest';
import { handleError } from '../../api/http/error-handler.ts';
import { loadShedding } from '../../api/plugins/load-shedding.ts';
import { migrationCount } from '../../db/migrate.ts';
import type { TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, recipientBody } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';

const MIGRATIONS = 'drizzle.__drizzle_migrations';

const test = withApi().extend('own', async ({ newApi }) => ({ api: await newApi() }));

const readinessOf = async (api: TestApi) => {
  const answer = await api.call(null, 'GET', '/health/ready');
  return { status: answer.statusCode, ...answer.json<Record<string, unknown>>() };
};

test('a database that is migrated further than this version needs is ready, and one that lacks a migration is not', async ({
  newApi,
}) => {
  const expected = migrationCount();
  const later = await newApi();
  await later.owner.pool.query(`INSERT INTO ${MIGRATIONS} (hash, created_at) VALUES ('of a later version', 1)`);
  expect(await readinessOf(later)).toMatchObject({ status: 'ready', migrations: { applied: expected + 1, expected } });
  const earlier = await newApi();
  await earlier.owner.pool.query(`DELETE FROM ${MIGRATIONS} WHERE id = (SELECT max(id) FROM ${MIGRATIONS})`);
  expect(await readinessOf(earlier)).toMatchObject({
    status: 'not_ready',
    migrations: { applied: expected - 1, expected },
  });
});

test('a clock that is more than five seconds from that of the database is not ready, and one that is four is', async ({
  newApi,
}) => {
  const offBy = (ms: number) => newApi({ deps: { now: () => new Date(Date.now() + ms) } });
  expect(await readinessOf(await offBy(4_000))).toMatchObject({ status: 'ready' });
  const ahead = await readinessOf(await offBy(40 * 60_000));
  expect(ahead).toMatchObject({ status: 'not_ready', postgres: 'up' });
  expect(ahead).toHaveProperty('clock_offset_ms', expect.closeTo(40 * 60_000, -4));
  // While the database answers a second late, the clock may be right.
  const behind = await offBy(-6_000);
  await expect.poll(() => readinessOf(behind)).toMatchObject({ status: 'not_ready' });
});

test('a database that answers late makes no clock wrong', async ({ own: { api } }) => {
  const { pool } = api.connection;
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  const answer = readinessOf(api);
  await delay(400);
  for (const client of clients) client.release();
  expect(await answer).toMatchObject({ status: 'ready', clock_offset_ms: 0 });
});

test('a database that refuses to write is not ready, and a write to it is a 503 that may be repeated', async ({
  own: { api },
}) => {
  const caller = await api.createCaller();
  const { rows } = await api.owner.pool.query('SELECT current_database() AS name');
  await api.owner.pool.query(`ALTER DATABASE "${rows[0].name}" SET default_transaction_read_only = on`);
  await makeReadOnly(api);
  expect(await readinessOf(api)).toMatchObject({ status: 'not_ready', postgres: 'read_only' });
  const refused = await api.call(caller, 'POST', '/v1/recipients', recipientBody());
  expect([refused.statusCode, refused.json().code]).toEqual([503, 'temporarily_unavailable']);
  expect(refused.headers).toHaveProperty('retry-after');
});

test('a connection that refuses to write is replaced: after a failover, the next request reaches the new primary', async ({
  own: { api },
}) => {
  const caller = await api.createCaller();
  const count = await makeReadOnly(api);
  let refusals = 0;
  for (;;) {
    const { statusCode } = await api.call(caller, 'POST', '/v1/recipients', recipientBody());
    if (statusCode === 201) break;
    expect(statusCode).toBe(503);
    refusals += 1;
  }
  expect(refusals).toBeGreaterThan(0);
  expect(refusals).toBeLessThanOrEqual(count);
  await createRecipient(api, caller);
});

/** Every connection of the pool refuses to write, as those to a former primary do; new ones do not. */
async function makeReadOnly({ connection }: TestApi): Promise<number> {
  const count = connection.pool.options.max;
  const clients = await Promise.all(Array.from({ length: count }, () => connection.pool.connect()));
  for (const client of clients) await client.query('SET default_transaction_read_only = on');
  for (const client of clients) client.release();
  return count;
}

test('503 with Retry-After while the process is overloaded, and 200 for its liveness', async ({ onTestFinished }) => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.setErrorHandler(handleError);
  await app.register(loadShedding, { delayMaxMs: 50 });
  for (const url of ['/', '/health/live']) app.get(url, async () => 'answered');
  await vi.waitUntil(async () => (await app.inject('/')).statusCode === 200, WAIT);
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  const overloaded = async () => {
    // Holds the event loop.
    Atomics.wait(nothing, 0, 0, 200);
    const answer = await app.inject('/');
    return answer.statusCode === 503 && answer;
  };
  const refused = await vi.waitUntil(overloaded, WAIT);
  expect([refused.json().code, refused.headers['retry-after']]).toEqual(['temporarily_unavailable', '2']);
  expect((await app.inject('/health/live')).statusCode).toBe(200);
});
