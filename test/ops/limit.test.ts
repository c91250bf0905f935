/** `org tier` and `limit set`: what an organization may request and hold. */
import { describe, expect } from 'vitest';
import { limitsOf } from '../../domain/quota.ts';
import { signIn } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { changeEnvironment, jsonOf } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';

const AUDIT = ['--operator', 'ana', '--note', 'they asked'];

const test = withApi({ config: { rateLimitPerMinute: 1_200 } })
  .extend('ops', FILE, ({ api }) => createOps(api.connection.db))
  .extend('owner', ({ api }) => api.createCaller())
  .extend(
    'me',
    ({ api, owner }) =>
      async () =>
        jsonOf(await api.call(owner, 'GET', '/v1/me')).limits,
  );

describe('org tier', () => {
  test('gives the limits of a tier from the next request on, and names the way back', async ({
    api,
    ops,
    owner,
    me,
  }) => {
    const { exitCode, printed } = await ops('org', 'tier', owner.orgId, 'large', ...AUDIT, '--yes');
    expect(exitCode).toBe(0);
    expect(printed[0]).toBe(`${owner.orgId} has the tier large, from its next request on.`);
    expect(printed).toContain('  requests_per_minute: 1200 → 6000');
    expect(printed.at(-1)).toBe(`The way back: npm run ops -- org tier ${owner.orgId} standard`);
    expect(await me()).toMatchObject({ requests_per_minute: 6_000 });
    await ops('org', 'tier', owner.orgId, 'standard', ...AUDIT, '--yes');
    expect(await me()).toMatchObject({ requests_per_minute: 1_200 });
    expect(await listAudit(api.connection.db, owner.orgId)).toMatchObject([
      { action: 'organization_tier', operator: 'ana', note: 'tier standard to large: they asked', orgId: owner.orgId },
      { action: 'organization_tier', note: 'tier large to standard: they asked' },
    ]);
  });

  test('refuses the tier that it has, an unknown one, and an unknown organization or one of another environment', async ({
    api,
    ops,
    owner,
  }) => {
    const elsewhere = await api.createCaller();
    await changeEnvironment(api, elsewhere);
    await expectUnchanged(api.connection.pool, async () => {
      const refused = [
        await ops('org', 'tier', owner.orgId, 'standard', ...AUDIT, '--yes'),
        await ops('org', 'tier', 'nobody', 'large', ...AUDIT, '--yes'),
        await ops('org', 'tier', elsewhere.orgId, 'large', ...AUDIT, '--yes'),
      ];
      expect(refused).toMatchObject([
        { exitCode: 1, printed: [] },
        { exitCode: 1, printed: [] },
        { exitCode: 1, printed: [] },
      ]);
      expect((await ops('org', 'tier', owner.orgId, 'huge', ...AUDIT, '--yes')).exitCode).toBe(2);
    });
  });
});

describe('limit set', () => {
  test('gives a limit of its own, which stays when the tier changes, and default takes it back', async ({
    api,
    ops,
    owner,
    me,
  }) => {
    const quotaOf = async (kind: string) => (await me()).quotas.find((quota: { kind: string }) => quota.kind === kind);
    const { printed } = await ops('limit', 'set', owner.orgId, 'wallets', '7', ...AUDIT, '--yes');
    expect(printed).toEqual([
      `${owner.orgId} has wallets 7, from its next request on.`,
      '  wallets: 1000 → 7',
      `The way back: npm run ops -- limit set ${owner.orgId} wallets default`,
    ]);
    expect(await quotaOf('wallets')).toMatchObject({ max: 7 });
    await ops('org', 'tier', owner.orgId, 'large', ...AUDIT, '--yes');
    expect(await quotaOf('wallets')).toMatchObject({ max: 7 });
    await ops('limit', 'set', owner.orgId, 'wallets', 'default', ...AUDIT, '--yes');
    expect(await quotaOf('wallets')).toMatchObject({ max: 10_000 });
    expect((await listAudit(api.connection.db, owner.orgId)).map(({ note }) => note)).toEqual([
      'wallets default to 7: they asked',
      'tier standard to large: they asked',
      'wallets 7 to default: they asked',
    ]);
  });

  test('gives a request rate, by which the next request is counted', async ({ api, ops, owner }) => {
    for (const [name, value] of [
      ['api_keys', '100'],
      ['wallets', '0'],
    ] as const)
      expect((await ops('limit', 'set', owner.orgId, name, value, ...AUDIT, '--yes')).exitCode).toBe(0);
    await ops('limit', 'set', owner.orgId, 'requests_per_minute', '2', ...AUDIT, '--yes');
    const answer = await api.call(owner, 'GET', '/v2/launch-gates');
    expect(answer.headers['ratelimit-policy']).toBe('"default";q=2;w=60');
  });

  test.for([
    ['api_keys', '-1'],
    ['api_keys', ' '],
    ['api_keys', '1.5'],
  ])('takes a whole number: %s %j exits with 2', async ([name = '', value = ''], { api, ops, owner }) => {
    await expectUnchanged(api.connection.pool, async () => {
      expect((await ops('limit', 'set', owner.orgId, name, value, ...AUDIT, '--yes')).exitCode).toBe(2);
    });
  });

  test.for([
    ['api_keys', '101'],
    ['webhooks', '21'],
    ['requests_per_minute', '0'],
    ['recipients', 'default'],
  ])('refuses %s %s, and writes nothing', async ([name = '', value = ''], { api, ops, owner }) => {
    await expectUnchanged(api.connection.pool, async () => {
      const refused = await ops('limit', 'set', owner.orgId, name, value, ...AUDIT, '--yes');
      expect(refused).toMatchObject({ exitCode: 1, printed: [] });
    });
  });
});

test('a consumer gets neither: its requests are those of a session, and its list shows every recipient it may have', async ({
  api,
  ops,
}) => {
  const { consumerId } = await signIn(api);
  await expectUnchanged(api.connection.pool, async () => {
    const refused = [
      await ops('org', 'tier', consumerId, 'large', ...AUDIT, '--yes'),
      await ops('limit', 'set', consumerId, 'requests_per_minute', '2', ...AUDIT, '--yes'),
      await ops('limit', 'set', consumerId, 'recipients', '1001', ...AUDIT, '--yes'),
    ];
    for (const each of refused) expect(each).toMatchObject({ exitCode: 1, printed: [] });
  });
});

test("a limit of an organization's own replaces that of its tier alone", () => {
  const limits = limitsOf({ tier: 'starter', limits: { wallets: 9 } }, 1_200);
  expect(limits).toMatchObject({ requests_per_minute: 300, recipients: 1_000, wallets: 9 });
});
