/** How many objects an organization may hold (contract §2), and what `GET /v1/me` says about it (contract §3). */
import { describe, expect } from 'vitest';
import { quotaOf, TIER_QUOTAS } from '../../domain/quota.ts';
import { SCOPES } from '../../domain/scope.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { callerOf, createRecipient, jsonOf, recipientBody } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';
import { verifyBody } from '../support/verification.ts';

const PER_MINUTE = 1_000;

const test = withApi({ config: { rateLimitPerMinute: PER_MINUTE } }).extend(
  'remote',
  FILE,
  openApi({ runtime: 'remote-sandbox' }),
);

const limit = (api: TestApi, { orgId }: Caller, limits: object, tier = 'standard') =>
  api.owner.pool.query('UPDATE organizations SET limits = $2, tier = $3 WHERE org_id = $1', [orgId, limits, tier]);
const me = async (api: TestApi, caller: Caller) => jsonOf(await api.call(caller, 'GET', '/v1/me'));
const usedOf = async (api: TestApi, caller: Caller, kind: string) =>
  (await me(api, caller)).limits.quotas.find((quota: { kind: string }) => quota.kind === kind);
const key = () => ({ 'idempotency-key': crypto.randomUUID() });

const WALLET = { name: 'Treasury', threshold: 1, signers: [{ address: `0x${'1'.repeat(40)}` }] };

describe('429 quota_exceeded', () => {
  test.for([
    ['recipients', '/v1/recipients', async () => recipientBody()],
    ['wallets', '/v1/wallets', async () => WALLET],
    [
      'verifications',
      '/v1/kyc/verify',
      async (api: TestApi, caller: Caller) => verifyBody(caller, await createRecipient(api, caller)),
    ],
    ['webhooks', '/v1/webhooks', async () => ({ url: 'https://hooks.example/a', event_types: ['*'] })],
  ] as const)(
    'for one of the %s more than the quota, which is not stored, and binds no key',
    async ([quota, url, bodyOf], { api }) => {
      const caller = await api.createCaller();
      await limit(api, caller, { [quota]: 1 });
      const first = key();
      const body = await bodyOf(api, caller);
      const created = await api.call(caller, 'POST', url, body, first);
      expect(created.statusCode, created.body).toBe(201);
      const another = await bodyOf(api, caller);
      const bound = key();
      await expectRefused(api, () => api.call(caller, 'POST', url, another, bound), 429, {
        code: 'quota_exceeded',
        quota,
      });
      expect((await api.call(caller, 'POST', url, body, first)).body).toBe(created.body);
      expect(await usedOf(api, caller, quota)).toEqual({ kind: quota, used: 1, max: 1 });
      await limit(api, caller, { [quota]: 2 });
      expect((await api.call(caller, 'POST', url, another, bound)).statusCode).toBe(201);
    },
  );

  test('for exactly what is over the quota when many are created at once', async ({ api }) => {
    const caller = await api.createCaller();
    await limit(api, caller, { recipients: 3 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => api.call(caller, 'POST', '/v1/recipients', recipientBody())),
    );
    expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(3);
    expect(answers.filter(({ statusCode }) => statusCode === 429)).toHaveLength(5);
  });

  test('never for a recipient that was refused for another reason', async ({ api }) => {
    const caller = await api.createCaller();
    const invalid = recipientBody({ bank_details: null });
    expect((await api.call(caller, 'POST', '/v1/recipients', invalid)).statusCode).toBe(422);
    expect(await usedOf(api, caller, 'recipients')).toMatchObject({ used: 0 });
  });
});

describe('GET /v1/me', () => {
  test.for(SCOPES)('200 for a key of scope %s: its organization, itself and its limits', async (scope, { api }) => {
    const caller = await api.createCaller(scope);
    const { organization, key: own, limits } = await me(api, caller);
    expect(organization).toMatchObject({ org_id: caller.orgId, name: 'Acme' });
    expect(own).toMatchObject({ key_id: caller.keyId, scope });
    expect(limits).toEqual({
      requests_per_minute: PER_MINUTE,
      quotas: Object.entries(TIER_QUOTAS.standard).map(([kind, max]) => ({
        kind,
        used: kind === 'api_keys' ? 1 : 0,
        max,
      })),
    });
  });

  test('shows the limits that its organization has for itself, and those requests are counted by', async ({ api }) => {
    const caller = await api.createCaller();
    await limit(api, caller, { requests_per_minute: 3, wallets: 7 });
    const answer = await api.call(caller, 'GET', '/v1/me');
    expect(jsonOf(answer).limits).toMatchObject({ requests_per_minute: 3 });
    expect(answer.headers['ratelimit-policy']).toBe('"default";q=3;w=60');
    expect(await usedOf(api, caller, 'wallets')).toMatchObject({ max: 7 });
    await limit(api, caller, {}, 'large');
    expect((await me(api, caller)).limits).toMatchObject({ requests_per_minute: 5 * PER_MINUTE });
  });
});

test.for([
  ['standard', 'in the local sandbox'],
  ['starter', 'everywhere else'],
] as const)('a new organization has the limits of the tier %s %s', async ([tier], { api, remote }) => {
  const used = tier === 'standard' ? api : remote;
  const signUp = { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' };
  const { limits } = await me(used, callerOf(jsonOf(await used.call(null, 'POST', '/v1/orgs', signUp))));
  expect(limits.quotas).toContainEqual({
    kind: 'recipients',
    used: 0,
    max: quotaOf({ tier, limits: {} }, 'recipients'),
  });
});
