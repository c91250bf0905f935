/**
 * What is accepted does not outrun what is carried out (contract §2): beyond OUTBOX_MAX_ROWS undispatched rows, every
 * operation with which a partner or a consumer writes is refused, and nothing else is.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { isCommand } from '../../api/route-config.ts';
import { newId } from '../../db/id.ts';
import { outbox } from '../../db/schema/index.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import type { TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, openApi } from '../support/fixture.ts';
import { createRecipient, jsonOf, recipientBody, settleBody } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { describedOperations } from './document.ts';
import { withAttack } from './fixture.ts';
import { bodyOf } from './sample.ts';
import { idsOf } from './world.ts';

/** More than the tenant's own objects need. */
const OUTBOX_MAX_ROWS = 100;
/** Longer than a process uses one count. */
const COUNT_VALID_MS = 1_100;

const test = withAttack({ config: { outboxMaxRows: OUTBOX_MAX_ROWS } })
  .extend('strict', FILE, openApi({ config: { outboxMaxRows: 0, webhookAllowLocalTargets: false } }))
  .extend('recipientId', FILE, ({ api, partner }) => createRecipient(api, partner))
  .extend(
    'settle',
    FILE,
    ({ api, partner, recipientId }) =>
      () =>
        api.call(partner, 'POST', '/v2/settle', settleBody(recipientId), { 'idempotency-key': crypto.randomUUID() }),
  );

/** Writes rows until the outbox has this many. */
async function fillOutbox(api: TestApi, rows: number): Promise<void> {
  await api.connection.db.execute(sql`
    INSERT INTO ${outbox} (kind, object_id, context, request_id)
    SELECT 'settlement', 'stl_' || n, '{}', 'test' FROM generate_series(1, ${rows} - (SELECT count(*)::int FROM ${outbox})) n`);
}

const operations = describedOperations(await describeApi());
const commands = operations.filter(({ method, access }) => isCommand(method, access));
/** Operations that are always answered: estimates, sign-up and sign-in. */
const NO_COMMANDS = new Set([
  'POST /v2/estimate',
  'POST /v1/caribbean/estimate',
  'POST /v1/fees/estimate',
  'POST /v1/orgs',
  'POST /consumer/auth/request-otp',
  'POST /consumer/auth/verify-otp',
]);

test('every operation is a command, but reads, estimates, sign-up, sign-in and provider events', () => {
  const others = operations.filter(
    ({ method, access }) => method !== 'GET' && access.auth !== 'signature' && !isCommand(method, access),
  );
  expect(new Set(others.map(({ name }) => name))).toEqual(NO_COMMANDS);
  expect(commands.length).toBeGreaterThan(NO_COMMANDS.size);
});

describe('the outbox has more rows than it may', () => {
  test.beforeEach(async ({ api, tenant: _tenant, settle }) => {
    await fillOutbox(api, OUTBOX_MAX_ROWS + 1);
    await vi.waitFor(async () => expect((await settle()).statusCode).toBe(503), WAIT);
  });

  test.for(commands.map((operation) => [operation.name, operation] as const))(
    '503 temporarily_unavailable for %s, and nothing is written',
    async ([_name, operation], { api, tenant, send }) => {
      await expectUnchanged(api.connection.pool, async () => {
        const answer = await send(operation, bodyOf(operation, idsOf(tenant, operation)));
        expect([answer.statusCode, JSON.parse(answer.body).code, answer.headers['retry-after']]).toEqual([
          503,
          'temporarily_unavailable',
          '2',
        ]);
      });
    },
  );

  test('401, 403 and 422 come first', async ({ api, partner, recipientId }) => {
    const settleWith = async (caller: typeof partner | null, body: unknown) =>
      (await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() })).statusCode;
    const reader = await api.createKey(partner.orgId, 'read');
    expect(await settleWith(null, settleBody(recipientId))).toBe(401);
    expect(await settleWith(reader, settleBody(recipientId))).toBe(403);
    expect(await settleWith(partner, {})).toBe(422);
  });

  test('reads, estimates and provider events are answered', async ({ api, partner, recipientId }) => {
    expect((await api.call(partner, 'GET', `/v1/recipients/${recipientId}`)).statusCode).toBe(200);
    const { recipient_id: _recipient, card_token: _token, ...estimate } = settleBody(recipientId);
    expect((await api.call(partner, 'POST', '/v2/estimate', estimate)).statusCode).toBe(200);
    expect(jsonOf(await sendBankledger(api, bankledgerBody('stl_unknown')))).toMatchObject({ received: true });
    expect((await api.call(null, 'GET', '/health/ready')).statusCode).toBe(200);
  });

  test('202 again once the rows are dispatched', async ({ api, settle }) => {
    await api.connection.db.delete(outbox);
    await vi.waitFor(async () => expect((await settle()).statusCode).toBe(202), WAIT);
  });
});

test('details, a URL or a bank account that break a rule are 422, also while the outbox is full', async ({
  strict,
}) => {
  await fillOutbox(strict, 1);
  const caller = await strict.createCaller();
  const status = async (method: 'POST' | 'PATCH', url: string, body: unknown) =>
    (await strict.call(caller, method, url, body, { 'idempotency-key': crypto.randomUUID() })).statusCode;
  const recipientId = newId();
  const byAccount = { payment_method: 'ach', card_token: undefined, banklink_account_token: 'access-sandbox-x' };
  const subscription = (url: string) => ({ url, event_types: ['*'] });
  expect(await status('POST', '/v1/webhooks', subscription('https://hooks.partner.example/'))).toBe(503);
  expect(await status('POST', '/v2/settle', settleBody(recipientId))).toBe(503);
  expect([
    await status('POST', '/v1/recipients', recipientBody({ bank_details: null })),
    await status('POST', '/v2/settle', settleBody(recipientId, byAccount)),
    await status('POST', '/v1/webhooks', subscription('http://127.0.0.1:9999/')),
    await status('PATCH', `/v1/webhooks/${newId()}`, { url: 'http://127.0.0.1:9999/' }),
  ]).toEqual([422, 422, 422, 422]);
});

test('an outbox with just as many rows as it may have refuses nothing', async ({ api, settle }) => {
  await api.connection.db.delete(outbox);
  await fillOutbox(api, OUTBOX_MAX_ROWS);
  await delay(COUNT_VALID_MS);
  expect((await settle()).statusCode).toBe(202);
});

test('a count that fails is not kept: the next command counts again', async ({ newApi }) => {
  const own = await newApi();
  const caller = await own.createCaller();
  const body = settleBody(await createRecipient(own, caller));
  const settleOnce = async () =>
    (await own.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() })).statusCode;
  await delay(COUNT_VALID_MS);
  await own.owner.pool.query('ALTER TABLE outbox RENAME TO outbox_away');
  expect(await settleOnce()).toBe(500);
  await own.owner.pool.query('ALTER TABLE outbox_away RENAME TO outbox');
  expect(await settleOnce()).toBe(202);
});

test('twenty commands at once count the rows once', async ({ api, settle }) => {
  await delay(COUNT_VALID_MS);
  const query = vi.spyOn(api.connection.pool, 'query');
  onTestFinished(() => query.mockRestore());
  await Promise.all(Array.from({ length: 20 }, settle));
  const counts = query.mock.calls.filter(([statement]) => JSON.stringify(statement).includes('OFFSET'));
  expect(counts).toHaveLength(1);
});
