/**
 * A bound idempotency key is answered before anything that may have changed since is judged (contract §6): the bounds
 * of a price, the recipient, the gates.
 */
import type pg from 'pg';
import { describe, expect } from 'vitest';
import { fingerprintOf } from '../../db/queries/idempotency-key.ts';
import { idempotencyKeys } from '../../db/schema/index.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { raceBehind } from '../support/database.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settleBody } from '../support/partner.ts';
import { expectInvalid, faultsOf } from '../support/refusal.ts';

const test = withApi()
  .extend('remote', FILE, openApi({ runtime: 'remote-sandbox' }))
  .extend('full', FILE, openApi({ config: { outboxMaxRows: 0 } }))
  .extend('recipientId', FILE, ({ api, partner }) => createRecipient(api, partner));

const ABOVE_BOUNDS = '50000.01';

const ROUTES = [
  {
    route: '/v2/settle',
    status: 202,
    bodyOf: (recipientId: string, amount: string): Json => settleBody(recipientId, { amount }),
  },
  {
    route: '/v1/caribbean/settle',
    status: 201,
    bodyOf: (recipientId: string, amount: string): Json => ({
      ...{ corridor: 'US-JM', amount, recipient_id: recipientId, payout_rail: 'bank_transfer' },
    }),
  },
] as const;

/**
 * Binds a key to a request as an earlier release did, whose bounds were others. The stored answer is that of another
 * settlement.
 */
async function bindAsBefore(
  { api, partner, recipientId }: { readonly api: TestApi; readonly partner: Caller; readonly recipientId: string },
  { route, bodyOf }: (typeof ROUTES)[number],
  amount: string,
): Promise<{ readonly key: string; readonly stored: string }> {
  const headers = { 'idempotency-key': crypto.randomUUID() };
  const accepted = await api.call(partner, 'POST', route, bodyOf(recipientId, '250.00'), headers);
  const fields = bodyOf(recipientId, amount);
  const key = crypto.randomUUID();
  await api.connection.db.insert(idempotencyKeys).values({
    ...{ orgId: partner.orgId, key, resourceId: jsonOf(accepted).settlement_id, createdAt: new Date() },
    ...fingerprintOf({ method: 'POST', route, bytes: Buffer.from(JSON.stringify(fields)), fields }),
    ...{ responseStatus: accepted.statusCode, responseBody: accepted.rawPayload },
  });
  return { key, stored: accepted.body };
}

describe.for(ROUTES)('$route with a price that is out of bounds', (settle) => {
  const { route, status, bodyOf } = settle;

  test('the stored answer for a key that was bound under other bounds', async ({ api, partner, recipientId }) => {
    const { key, stored } = await bindAsBefore({ api, partner, recipientId }, settle, ABOVE_BOUNDS);
    const headers = { 'idempotency-key': key };
    const answer = await api.call(partner, 'POST', route, bodyOf(recipientId, ABOVE_BOUNDS), headers);
    expect([answer.statusCode, answer.body]).toEqual([status, stored]);
    expect(answer.headers['idempotency-replayed']).toBe('true');
  });

  test('409 with the differing fields for another command with that key', async ({ api, partner, recipientId }) => {
    const { key } = await bindAsBefore({ api, partner, recipientId }, settle, '250.00');
    const other = await api.call(partner, 'POST', route, bodyOf(recipientId, ABOVE_BOUNDS), { 'idempotency-key': key });
    expect(other.statusCode).toBe(409);
    expect(jsonOf(other)).toMatchObject({ code: 'idempotency_key_reused', mismatch: ['amount'] });
  });

  test('409 that names no field when only null and the order of the metadata differ', async ({
    api,
    partner,
    recipientId,
  }) => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const send = (more: Json) =>
      api.call(partner, 'POST', route, { ...bodyOf(recipientId, '250.00'), ...more }, headers);
    expect((await send({ metadata: { a: '1', b: '2' } })).statusCode).toBe(status);
    const other = await send({ reference: null, metadata: { b: '2', a: '1' } });
    expect([other.statusCode, jsonOf(other).mismatch]).toEqual([409, []]);
  });

  test('422 for a free key, which stays free', async ({ api, partner, recipientId }) => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const refused = () => api.call(partner, 'POST', route, bodyOf(recipientId, ABOVE_BOUNDS), headers);
    await expectInvalid(api, refused, [['body.amount', 'value_error']]);
    const accepted = await api.call(partner, 'POST', route, bodyOf(recipientId, '250.00'), headers);
    expect(accepted.statusCode).toBe(status);
  });

  test('422 in a remote runtime, where the gates are closed too', async ({ remote, recipientId }) => {
    const caller = await remote.createCaller();
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const refused = await remote.call(caller, 'POST', route, bodyOf(recipientId, ABOVE_BOUNDS), headers);
    expect(refused.statusCode).toBe(422);
    const valid = await remote.call(caller, 'POST', route, bodyOf(recipientId, '250.00'), headers);
    expect([valid.statusCode, jsonOf(valid).code]).toEqual([503, 'launch_gates_closed']);
  });

  test('422 while the outbox is full', async ({ full, recipientId }) => {
    const caller = await full.createCaller();
    await full.connection.pool.query(
      `INSERT INTO outbox (kind, object_id, context, request_id) VALUES ('otp', 'x', '{}', 'test')`,
    );
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const refused = await full.call(caller, 'POST', route, bodyOf(recipientId, ABOVE_BOUNDS), headers);
    expect(refused.statusCode).toBe(422);
    const valid = await full.call(caller, 'POST', route, bodyOf(recipientId, '250.00'), headers);
    expect([valid.statusCode, jsonOf(valid).code]).toEqual([503, 'temporarily_unavailable']);
  });
});

test('422 lists the faults of the price with those of the form', async ({ api, partner, recipientId }) => {
  const body = settleBody(recipientId, { amount: ABOVE_BOUNDS, card_token: undefined });
  const refused = await api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
  expect(faultsOf(refused)).toEqual([
    ['body.card_token', 'missing'],
    ['body.amount', 'value_error'],
  ]);
});

describe('two requests with one key at the same moment', () => {
  const bind = (orgId: string, key: string, body: Json, stored: Buffer) => {
    const { requestHash, fieldDigests } = fingerprintOf({
      ...{ method: 'POST', route: '/v2/settle', bytes: Buffer.from(JSON.stringify(body)), fields: body },
    });
    const statement = `INSERT INTO idempotency_keys
      (org_id, key, request_hash, field_digests, resource_id, response_status, response_body, created_at)
      VALUES ($1, $2, $3, $4, 'stl_other', 202, $5, now())`;
    return (holder: pg.PoolClient) => holder.query(statement, [orgId, key, requestHash, fieldDigests, stored]);
  };
  const stored = async (api: TestApi, caller: Caller, recipientId: string): Promise<Buffer> => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    return (await api.call(caller, 'POST', '/v2/settle', settleBody(recipientId), headers)).rawPayload;
  };

  test('get one answer when the first commits', async ({ api, partner, recipientId }) => {
    const key = crypto.randomUUID();
    const body = settleBody(recipientId);
    const bytes = await stored(api, partner, recipientId);
    const settle = () => api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
    const [second] = await raceBehind(api.connection.pool, { hold: bind(partner.orgId, key, body, bytes) }, [settle]);
    expect([second?.statusCode, second?.body]).toEqual([202, bytes.toString()]);
    expect(second?.headers['idempotency-replayed']).toBe('true');
  });

  test('get one answer although the second would be refused', async ({ api, partner, recipientId }) => {
    const key = crypto.randomUUID();
    const inactive = await createRecipient(api, partner);
    expect((await api.call(partner, 'DELETE', `/v1/recipients/${inactive}`)).statusCode).toBe(200);
    const body = settleBody(inactive);
    const bytes = await stored(api, partner, recipientId);
    const settle = () => api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
    const [second] = await raceBehind(api.connection.pool, { hold: bind(partner.orgId, key, body, bytes) }, [settle]);
    expect([second?.statusCode, second?.body]).toEqual([202, bytes.toString()]);
    const alone = await api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
    expect([alone.statusCode, jsonOf(alone).code]).toEqual([409, 'state_conflict']);
  });

  test('409 for the second when it is another command', async ({ api, partner, recipientId }) => {
    const key = crypto.randomUUID();
    const bytes = await stored(api, partner, recipientId);
    const hold = bind(partner.orgId, key, settleBody(recipientId), bytes);
    const other = settleBody(recipientId, { amount: '250.01' });
    const settle = () => api.call(partner, 'POST', '/v2/settle', other, { 'idempotency-key': key });
    const [second] = await raceBehind(api.connection.pool, { hold }, [settle]);
    expect(second?.statusCode).toBe(409);
    expect(second?.json().mismatch).toEqual(['amount']);
  });
});
