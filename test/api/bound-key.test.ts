/**
 * A bound idempotency key is answered before anything that may have changed since is judged (contract §6): the bounds
 * of a price, the recipient, the gates.
 */
import type { LightMyRequestResponse } from 'fastify';
import type pg from 'pg';
import { describe, expect } from 'vitest';
import { fingerprintOf } from '../../db/queries/idempotency-key.ts';
import { idempotencyKeys } from '../../db/schema/index.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { callAs, createConsumerRecipient, insertConsumerSession, transferBody } from '../support/consumer.ts';
import { raceBehind } from '../support/database.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settleBody } from '../support/partner.ts';
import { expectInvalid, expectRefused, faultsOf } from '../support/refusal.ts';

const test = withApi()
  .extend('remote', FILE, openApi({ runtime: 'remote-sandbox' }))
  .extend('full', FILE, openApi({ config: { outboxMaxRows: 0 } }))
  .extend('recipientId', FILE, ({ api, partner }) => createRecipient(api, partner));

const ABOVE_BOUNDS = '50000.01';

/** Who begins settlements by one route. */
type Payer = {
  readonly orgId: string;
  readonly createRecipient: () => Promise<string>;
  readonly post: (body: Json, headers: Record<string, string>) => Promise<LightMyRequestResponse>;
};

const partnerOf = async (api: TestApi, route: string): Promise<Payer> => {
  const caller = await api.createCaller();
  return {
    orgId: caller.orgId,
    createRecipient: () => createRecipient(api, caller),
    post: (body, headers) => api.call(caller, 'POST', route, body, headers),
  };
};

const consumerOf = async (api: TestApi, route: string): Promise<Payer> => {
  const consumer = await insertConsumerSession(api);
  return {
    orgId: consumer.consumerId,
    createRecipient: () => createConsumerRecipient(api, consumer),
    post: (body, headers) => callAs(api, consumer, 'POST', route, body, headers),
  };
};

const REORDERED = [{ metadata: { a: '1', b: '2' } }, { reference: null, metadata: { b: '2', a: '1' } }];

const ROUTES = [
  {
    route: '/v2/settle',
    status: 202,
    payerOf: partnerOf,
    bodyOf: (recipientId: string, amount: string): Json => settleBody(recipientId, { amount }),
    alike: REORDERED,
  },
  {
    route: '/v1/caribbean/settle',
    status: 201,
    payerOf: partnerOf,
    bodyOf: (recipientId: string, amount: string): Json => ({
      ...{ corridor: 'US-JM', amount, recipient_id: recipientId, payout_rail: 'bank_transfer' },
    }),
    alike: REORDERED,
  },
  {
    route: '/consumer/transfers',
    status: 201,
    payerOf: consumerOf,
    bodyOf: (recipientId: string, amount: string): Json => transferBody(recipientId, { amount }),
    alike: [{}, { reference: null }],
  },
] as const;

/**
 * Binds a key to a request as an earlier release did, whose bounds were others. The stored answer is that of another
 * settlement.
 */
async function bindAsBefore(
  api: TestApi,
  payer: Payer,
  { route, bodyOf }: (typeof ROUTES)[number],
  { recipientId, amount }: { readonly recipientId: string; readonly amount: string },
): Promise<{ readonly key: string; readonly stored: string }> {
  const headers = { 'idempotency-key': crypto.randomUUID() };
  const accepted = await payer.post(bodyOf(recipientId, '250.00'), headers);
  const fields = bodyOf(recipientId, amount);
  const key = crypto.randomUUID();
  await api.connection.db.insert(idempotencyKeys).values({
    ...{ orgId: payer.orgId, key, resourceId: jsonOf(accepted).settlement_id, createdAt: new Date() },
    ...fingerprintOf({ method: 'POST', route, bytes: Buffer.from(JSON.stringify(fields)), fields }),
    ...{ responseStatus: accepted.statusCode, responseBody: accepted.rawPayload },
  });
  return { key, stored: accepted.body };
}

describe.for(ROUTES)('$route with a price that is out of bounds', (settle) => {
  const { route, status, payerOf, bodyOf, alike } = settle;

  test('the stored answer for a key that was bound under other bounds', async ({ api }) => {
    const payer = await payerOf(api, route);
    const recipientId = await payer.createRecipient();
    const { key, stored } = await bindAsBefore(api, payer, settle, { recipientId, amount: ABOVE_BOUNDS });
    const answer = await payer.post(bodyOf(recipientId, ABOVE_BOUNDS), { 'idempotency-key': key });
    expect([answer.statusCode, answer.body]).toEqual([status, stored]);
    expect(answer.headers['idempotency-replayed']).toBe('true');
  });

  test('409 with the differing fields for another command with that key', async ({ api }) => {
    const payer = await payerOf(api, route);
    const recipientId = await payer.createRecipient();
    const { key } = await bindAsBefore(api, payer, settle, { recipientId, amount: '250.00' });
    const other = await payer.post(bodyOf(recipientId, ABOVE_BOUNDS), { 'idempotency-key': key });
    expect(other.statusCode).toBe(409);
    expect(jsonOf(other)).toMatchObject({ code: 'idempotency_key_reused', mismatch: ['amount'] });
  });

  test('409 that names no field when only null and the order of an object differ', async ({ api }) => {
    const payer = await payerOf(api, route);
    const recipientId = await payer.createRecipient();
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const [first, second] = alike;
    const send = (more: Json) => payer.post({ ...bodyOf(recipientId, '250.00'), ...more }, headers);
    expect((await send(first)).statusCode).toBe(status);
    const other = await send(second);
    expect([other.statusCode, jsonOf(other).mismatch]).toEqual([409, []]);
  });

  test('422 for a free key, which stays free', async ({ api }) => {
    const payer = await payerOf(api, route);
    const recipientId = await payer.createRecipient();
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const refused = () => payer.post(bodyOf(recipientId, ABOVE_BOUNDS), headers);
    await expectInvalid(api, refused, [['body.amount', 'value_error']]);
    const accepted = await payer.post(bodyOf(recipientId, '250.00'), headers);
    expect(accepted.statusCode).toBe(status);
  });

  test('422 in a remote runtime, where the gates are closed too', async ({ remote, recipientId }) => {
    const payer = await payerOf(remote, route);
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const refused = await payer.post(bodyOf(recipientId, ABOVE_BOUNDS), headers);
    expect(refused.statusCode).toBe(422);
    const valid = await payer.post(bodyOf(recipientId, '250.00'), headers);
    expect([valid.statusCode, jsonOf(valid).code]).toEqual([503, 'launch_gates_closed']);
  });

  test('422 while the outbox is full', async ({ full, recipientId }) => {
    const payer = await payerOf(full, route);
    await full.connection.pool.query(
      `INSERT INTO outbox (kind, object_id, context, request_id) VALUES ('otp', 'x', '{}', 'test')`,
    );
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const refused = await payer.post(bodyOf(recipientId, ABOVE_BOUNDS), headers);
    expect(refused.statusCode).toBe(422);
    const valid = await payer.post(bodyOf(recipientId, '250.00'), headers);
    expect([valid.statusCode, jsonOf(valid).code]).toEqual([503, 'temporarily_unavailable']);
  });
});

test.for(ROUTES)(
  '422 at $route for a recipient that it does not fit, also if it is inactive',
  async (settle, { api }) => {
    const { payerOf, route, bodyOf } = settle;
    const payer = await payerOf(api, route);
    const recipientId = await payer.createRecipient();
    await api.connection.pool.query('UPDATE recipients SET is_active = false WHERE recipient_id = $1', [recipientId]);
    const post = (more: Json) =>
      payer.post({ ...bodyOf(recipientId, '250.00'), ...more }, { 'idempotency-key': crypto.randomUUID() });
    await expectInvalid(api, () => post({ corridor: 'US-TT' }), [['body.recipient_id', 'value_error']]);
    await expectInvalid(api, () => post({ payout_rail: 'mobile_money' }), [['body.payout_rail', 'value_error']]);
    const valid = await post({});
    expect([valid.statusCode, jsonOf(valid).current_state]).toEqual([409, 'inactive']);
  },
);

test('422 while the outbox is full for what the handler would find invalid', async ({ full, recipientId }) => {
  const caller = await full.createCaller();
  await full.connection.pool.query(
    `INSERT INTO outbox (kind, object_id, context, request_id) VALUES ('otp', 'x', '{}', 'test')`,
  );
  const key = { name: 'ci', scope: 'read', expires_at: '2020-01-01T00:00:00Z' };
  const post = (url: string, body: Json) => full.call(caller, 'POST', url, body);
  expect(faultsOf(await post(`/v1/orgs/${caller.orgId}/keys`, key))).toEqual([['body.expires_at', 'value_error']]);
  const applicant = { recipient_id: recipientId, level_name: 'basic' };
  expect(faultsOf(await post('/v1/kyc/idverify/applicant', applicant))).toEqual([['body.level_name', 'value_error']]);
});

test.for(ROUTES.filter(({ route }) => route !== '/v1/caribbean/settle'))(
  '422 lists the faults of the price with those of the form at $route',
  async ({ route, payerOf, bodyOf }, { api, recipientId }) => {
    const payer = await payerOf(api, route);
    const { card_token: _missing, ...body } = bodyOf(recipientId, ABOVE_BOUNDS);
    const refused = await payer.post(body, { 'idempotency-key': crypto.randomUUID() });
    expect(faultsOf(refused)).toEqual([
      ['body.card_token', 'missing'],
      ['body.amount', 'value_error'],
    ]);
  },
);

test.for([
  ['amount', async () => '250.01'],
  ['recipient_id', createRecipient],
  ['corridor', async () => 'US-TT'],
] as const)(
  '409 that names %s for a settlement with another one and the same key, and nothing is written',
  async ([field, another], { api, partner, recipientId }) => {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const settle = (body: Json) => api.call(partner, 'POST', '/v2/settle', body, headers);
    expect((await settle(settleBody(recipientId))).statusCode).toBe(202);
    const other = settleBody(recipientId, { [field]: await another(api, partner) });
    await expectRefused(api, () => settle(other), 409, { code: 'idempotency_key_reused', mismatch: [field] });
  },
);

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
