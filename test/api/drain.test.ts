import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createDrain } from '../../api/http/drain.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';

const LINGER_MS = 5_000;
const SHORT_LINGER_MS = 200;

let api: TestApi;
let url: string;
let agent: Agent;
let arrived: Promise<void>;
let letGo: (health: 'up') => void;

/** Readiness asks for Temporal's health, which here comes when the test says so: a request that is under way. */
beforeEach(async () => {
  const health = new Promise<'up'>((resolve) => {
    letGo = resolve;
  });
  let temporalHealth = () => health;
  arrived = new Promise((resolve) => {
    temporalHealth = () => {
      resolve();
      return health;
    };
  });
  api = await createTestApi({ deps: { temporalHealth } });
  agent = new Agent({ connections: 1 });
});
afterEach(async () => {
  letGo('up');
  await agent.destroy();
  await api.close();
});

async function listen(lingerMs: number): Promise<() => Promise<void>> {
  const drain = createDrain(api.app.server, lingerMs);
  url = await api.app.listen({ host: '127.0.0.1', port: 0 });
  return drain;
}

const ask = async (
  path: string,
  { dispatcher = agent, sent = {} }: { dispatcher?: Agent; sent?: Record<string, string> } = {},
) => {
  const { statusCode, headers, body } = await request(`${url}${path}`, { dispatcher, headers: sent });
  await body.dump();
  return { statusCode, connection: headers['connection'] };
};

test('a new connection is refused while what is under way is still answered, and that answer ends its connection', async () => {
  const drain = await listen(LINGER_MS);
  const answer = ask('/health/ready');
  await arrived;
  const drained = drain();
  await expect(ask('/health/live', { dispatcher: new Agent() })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  letGo('up');
  expect(await answer).toEqual({ statusCode: 200, connection: 'close' });
  await drained;
});

test('a request that comes on a kept connection is answered as ever, and the leaving waits for no more than that', async () => {
  const drain = await listen(LINGER_MS);
  expect(await ask('/health/live')).toEqual({ statusCode: 200, connection: 'keep-alive' });
  const startedAt = performance.now();
  const drained = drain();
  expect(await ask('/health/live')).toEqual({ statusCode: 200, connection: 'close' });
  await drained;
  expect(performance.now() - startedAt).toBeLessThan(LINGER_MS);
});

test('an idle connection is not ended while its caller may be writing on it, but only so long', async () => {
  const drain = await listen(SHORT_LINGER_MS);
  await ask('/health/live');
  const drained = drain().then(() => 'drained');
  expect(await Promise.race([drained, delay(SHORT_LINGER_MS / 2, 'lingering')])).toBe('lingering');
  expect(await drained).toBe('drained');
});

test('a read that waits for a change is answered with what there is when the process leaves', async () => {
  const drain = await listen(SHORT_LINGER_MS);
  const caller = await api.createCaller();
  const key = { 'idempotency-key': crypto.randomUUID() };
  const settlement = jsonOf(
    await api.call(caller, 'POST', '/v2/settle', settleBody(await createRecipient({ api }, caller)), key),
  );
  const startedAt = performance.now();
  const answer = ask(`/v2/settle/${settlement.settlement_id}`, {
    sent: { 'x-api-key': caller.apiKey, prefer: 'wait=30' },
  });
  await delay(SHORT_LINGER_MS);
  await drain();
  await api.app.close();
  expect(await answer).toEqual({ statusCode: 200, connection: 'close' });
  expect(performance.now() - startedAt).toBeLessThan(15_000);
});
