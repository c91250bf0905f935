/** Deliveries by an operator's hand. */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditEntries, webhookDeliveries } from '../../db/schema/index.ts';
import { runOps } from '../../ops/main.ts';
import { type Caller, createTestApi, TEST_KEYS, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';

const ACT = ['--operator', 'ana', '--note', 'their endpoint is back'];
let api: TestApi;
let caller: Caller;
let webhookId: string;
let printed: string[] = [];
let now = new Date();

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
  const answer = await api.call(caller, 'POST', '/v1/webhooks', { url: 'http://127.0.0.1:9999/', event_types: ['*'] });
  webhookId = answer.json().webhook_id;
});
afterAll(() => api.close());

const ops = (...args: string[]) => {
  printed = [];
  const client = () => {
    throw new Error('deliveries need no Temporal');
  };
  return runOps(
    {
      runtime: 'local-sandbox',
      db: api.connection.db,
      keys: TEST_KEYS,
      client,
      now: () => now,
      print: (line) => printed.push(line),
    },
    args,
  );
};
const ping = async (): Promise<string> =>
  (await api.call(caller, 'POST', `/v1/webhooks/${webhookId}/test`)).json().delivery_id;
const signalsOf = async (deliveryId: string) => {
  const { rows } = await api.connection.pool.query(
    `SELECT signal, context->>'generation' AS generation FROM outbox WHERE object_id = $1 ORDER BY outbox_id`,
    [deliveryId],
  );
  return rows.map(({ signal, generation }) => [signal, generation]);
};

test.each([
  ['nothing', []],
  ['what is not there', ['no-such-delivery', ...ACT]],
  ['something by nobody', ['no-such-delivery', '--note', 'why']],
] as const)('retrying %s is refused with 1, and nothing is written', async (_what, args) => {
  const before = await digestTables(api.connection.pool);
  expect(await ops('retry-delivery', ...args)).toBe(1);
  expect(await digestTables(api.connection.pool)).toEqual(before);
});

test('a pending delivery is asked for its next attempt, with an audit entry', async () => {
  const deliveryId = await ping();
  expect(await ops('retry-delivery', deliveryId, ...ACT)).toBe(0);
  expect(await signalsOf(deliveryId)).toEqual([
    [null, '1'],
    ['retryRequested', '1'],
  ]);
  const audit = await api.connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, deliveryId));
  expect(audit).toMatchObject([{ orgId: caller.orgId, action: 'delivery_retry', operator: 'ana', note: ACT[3] }]);
});

test('a delivery that was given up begins a new generation', async () => {
  const deliveryId = await ping();
  await api.connection.db
    .update(webhookDeliveries)
    .set({ status: 'exhausted', nextAttemptAt: null })
    .where(eq(webhookDeliveries.deliveryId, deliveryId));
  expect(await ops('retry-delivery', deliveryId, ...ACT)).toBe(0);
  expect(await signalsOf(deliveryId)).toEqual([
    [null, '1'],
    [null, '2'],
  ]);
});

test('stuck names a delivery past its time, and none whose subscriber keeps all its places', async () => {
  const [late, waiting] = [await ping(), await ping()];
  await api.connection.db
    .update(webhookDeliveries)
    .set({ waitingSince: new Date() })
    .where(eq(webhookDeliveries.deliveryId, waiting));
  now = new Date(Date.now() + 600_000);
  expect(await ops('stuck')).toBe(0);
  expect([late, waiting].map((id) => printed.filter((line) => line.includes(id)).length)).toEqual([1, 0]);
});
