/** Every creation, and each rotation, takes an optional Idempotency-Key, by one rule (contract §1, §6). */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, recipientBody } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';

const test = withApi();

type Creation = {
  readonly path: (caller: Caller) => string;
  readonly body: (recipientId: string, orgId: string) => Json;
  /** Another valid body. */
  readonly other: Json;
  /** The field of the secret that the answer shows. */
  readonly secret?: string;
  readonly table: string;
};

const CREATIONS: Readonly<Record<string, Creation>> = {
  recipient: {
    path: () => '/v1/recipients',
    body: () => recipientBody(),
    other: { name: 'Another Name' },
    table: 'recipients',
  },
  'API key': {
    path: ({ orgId }) => `/v1/orgs/${orgId}/keys`,
    body: () => ({ name: 'ledger', scope: 'read' }),
    other: { name: 'other' },
    secret: 'api_key',
    table: 'api_keys',
  },
  wallet: {
    path: () => '/v1/wallets',
    body: () => ({
      name: 'treasury',
      signers: [{ address: '0x52908400098527886e0f7030069857d2e4169ee7' }],
      threshold: 1,
    }),
    other: { name: 'other' },
    table: 'wallets',
  },
  verification: {
    path: () => '/v1/kyc/verify',
    body: (recipient_id, org_id) => ({ recipient_id, org_id }),
    other: { document_type: 'passport' },
    table: 'verifications',
  },
  applicant: {
    path: () => '/v1/kyc/idverify/applicant',
    body: (recipient_id, org_id) => ({ recipient_id, org_id }),
    other: { country: 'JM' },
    secret: 'sdk_access_token',
    table: 'verifications',
  },
  webhook: {
    path: () => '/v1/webhooks',
    body: () => ({ url: 'https://hooks.partner.example/', event_types: ['*'] }),
    other: { description: 'other' },
    secret: 'secret',
    table: 'webhooks',
  },
};

async function prepare(api: TestApi, creation: Creation) {
  const caller = await api.createCaller();
  const body = creation.body(await createRecipient(api, caller), caller.orgId);
  const headers = { 'idempotency-key': newId() };
  const url = creation.path(caller);
  const post = (change: Json = {}) => api.call(caller, 'POST', url, { ...body, ...change }, headers);
  const countRows = async (): Promise<number> => {
    const { rows } = await api.connection.pool.query(
      `SELECT count(*)::int AS count FROM ${creation.table} WHERE org_id = $1`,
      [caller.orgId],
    );
    return rows[0]?.count;
  };
  return { caller, post, countRows, before: await countRows() };
}

describe.each(Object.entries(CREATIONS))('creating: %s', (_name, creation) => {
  test('201 again with the same bytes for the same key, and one object', async ({ api }) => {
    const { post, countRows, before } = await prepare(api, creation);
    const first = await post();
    const again = await post();
    expect([first.statusCode, again.statusCode], first.body).toEqual([201, 201]);
    expect(again.rawPayload).toEqual(first.rawPayload);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(await countRows()).toBe(before + 1);
  });

  test('one object and one answer for ten requests with one key at once', async ({ api }) => {
    const { post, countRows, before } = await prepare(api, creation);
    const answers = await Promise.all(Array.from({ length: 10 }, () => post()));
    expect(new Set(answers.map(({ statusCode, body }) => `${statusCode} ${body}`)).size).toBe(1);
    expect(answers[0]?.statusCode).toBe(201);
    expect(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined)).toHaveLength(1);
    expect(await countRows()).toBe(before + 1);
  });

  test('409 with the fields that differ for the same key with another body, and nothing is written', async ({
    api,
  }) => {
    const { post } = await prepare(api, creation);
    await post();
    await expectRefused(api, () => post(creation.other), 409, {
      code: 'idempotency_key_reused',
      mismatch: Object.keys(creation.other),
    });
  });

  test('a refused request does not bind its key', async ({ api }) => {
    const { post } = await prepare(api, creation);
    expect((await post({ unknown_field: 1 })).statusCode).toBe(422);
    expect((await post()).statusCode).toBe(201);
  });
});

describe.each(Object.entries(CREATIONS).filter(([, { secret }]) => secret))('the secret of: %s', (_name, creation) => {
  const secretOf = (answer: Parameters<typeof jsonOf>[0]): string => jsonOf(answer)[creation.secret ?? ''];

  test('is shown again to its key for 24 hours, and then 409 says so', async ({ api }) => {
    const { caller, post } = await prepare(api, creation);
    const secret = secretOf(await post());
    expect(secretOf(await post())).toBe(secret);
    await api.connection.pool.query('UPDATE idempotency_secrets SET expires_at = $2 WHERE org_id = $1', [
      caller.orgId,
      new Date(),
    ]);
    const late = await post();
    expect([late.statusCode, jsonOf(late).code, jsonOf(late).mismatch]).toEqual([409, 'idempotency_key_reused', []]);
    expect(jsonOf(late).detail).toContain('24 hours');
    expect(late.body).not.toContain(secret);
  });
});

describe('a rotation of a subscription’s secret', () => {
  test('200 with the same secret for the same key, one rotation, and 409 for another subscription', async ({ api }) => {
    const caller = await api.createCaller();
    const subscribe = async () =>
      jsonOf(
        await api.call(caller, 'POST', '/v1/webhooks', { url: 'https://hooks.partner.example/', event_types: ['*'] }),
      ).webhook_id;
    const [webhookId, other] = [await subscribe(), await subscribe()];
    const headers = { 'idempotency-key': newId() };
    const rotate = (id: string) => api.call(caller, 'POST', `/v1/webhooks/${id}/rotate-secret`, undefined, headers);
    const [first, again] = [await rotate(webhookId), await rotate(webhookId)];
    expect([first.statusCode, again.statusCode, again.body]).toEqual([200, 200, first.body]);
    expect([first.headers['idempotency-replayed'], again.headers['idempotency-replayed']]).toEqual([undefined, 'true']);
    const { rowCount } = await api.connection.pool.query(
      'SELECT 1 FROM webhook_earlier_secrets WHERE webhook_id = $1',
      [webhookId],
    );
    expect(rowCount).toBe(1);
    await expectRefused(api, () => rotate(other), 409, { code: 'idempotency_key_reused' });
  });
});
