/** `org reissue-key`: two operators give an organization a new key. */
import type pg from 'pg';
import { expect } from 'vitest';
import { TEST_KEYS } from '../support/api.ts';
import { raceBehind } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { createOps, listAudit, recordKeys } from '../support/ops.ts';
import { expectUnchanged } from '../support/refusal.ts';

const DAY_MS = 86_400_000;

const test = withApi().extend('reissue', async ({ api, clock }) => {
  await recordKeys(api.connection.db);
  const ops = createOps(api.connection.db, { now: clock.now });
  return (orgId: string, operator: string, ...rest: string[]) =>
    ops('org', 'reissue-key', orgId, '--operator', operator, '--note', 'seen on a call', ...rest);
});

test('the first operator requests a key, another one gets it, and it works with the scope full', async ({
  api,
  partner,
  reissue,
  clock,
}) => {
  clock.stop(clock.now());
  const requested = await reissue(partner.orgId, 'ana', '--yes', '--json');
  expect(requested.exitCode).toBe(0);
  expect(JSON.parse(requested.printed.join(''))).toEqual({
    organization: partner.orgId,
    key_id: null,
    confirm_before: new Date(clock.now().getTime() + DAY_MS).toISOString(),
  });
  const { exitCode, printed } = await reissue(partner.orgId, 'bo', '--yes', '--json');
  expect(exitCode).toBe(0);
  const { api_key: apiKey, key_id: keyId } = JSON.parse(printed.join(''));
  const keys = (await api.call({ ...partner, keyId, apiKey }, 'GET', `/v1/orgs/${partner.orgId}/keys`)).json();
  expect(keys.find(({ key_id }: { key_id: string }) => key_id === keyId)).toMatchObject({ scope: 'full' });
  const events = (await api.call(partner, 'GET', `/v1/events?object_id=${keyId}`)).json();
  expect(events).toMatchObject([{ type: 'api_key.created', sequence: 1, data: { key_id: keyId, scope: 'full' } }]);
  expect(await listAudit(api.connection.db, partner.orgId)).toMatchObject([
    { action: 'key_reissue_request', operator: 'ana', orgId: partner.orgId },
    { action: 'key_reissue', operator: 'bo', orgId: partner.orgId },
  ]);
  // What was confirmed counts for no further key.
  expect((await reissue(partner.orgId, 'cy', '--yes')).printed[0]).toMatch(/^Requested\./);
});

test('a new key is shown also when the answer to the commit is lost, and not by a preview', async ({
  api,
  reissue,
}) => {
  const { orgId } = await api.createCaller();
  await reissue(orgId, 'ana', '--yes');
  const crash = (point: string): void => {
    if (point === 'api_key.reissue:after_commit') throw new Error('Connection terminated unexpectedly');
  };
  const confirm = (...rest: string[]) =>
    createOps(api.connection.db, { crash })(
      ...['org', 'reissue-key', orgId, '--operator', 'bo', '--note', 'seen on a call', ...rest],
    );
  const preview = await confirm();
  expect([preview.exitCode, JSON.stringify(preview)]).toEqual([69, expect.not.stringContaining('sk_local_')]);
  const lost = await confirm('--yes');
  expect([lost.exitCode, lost.printed]).toEqual([69, []]);
  const [, apiKey = ''] = / If so: (\S+)$/.exec(lost.warned[0] ?? '') ?? [];
  expect((await api.call({ orgId, keyId: '', apiKey }, 'GET', '/v1/me')).statusCode).toBe(200);
});

test('no key is made under a pepper that no process has: every process would refuse it', async ({ api, reissue }) => {
  const { orgId } = await api.createCaller();
  await reissue(orgId, 'ana', '--yes');
  const pepper = { id: 'early000', secret: 'a pepper that no process has' };
  const ops = createOps(api.connection.db, { keys: { ...TEST_KEYS, apiKeyPeppers: [pepper] } });
  await expectUnchanged(api.connection.pool, async () => {
    const answer = await ops('org', 'reissue-key', orgId, '--operator', 'bo', '--note', 'seen on a call', '--yes');
    expect([answer.exitCode, answer.warned[0]]).toEqual([1, expect.stringContaining('which no process has')]);
  });
});

test('two operators who confirm at the same moment get one key', async ({ api, reissue }) => {
  const { orgId } = await api.createCaller();
  await reissue(orgId, 'ana', '--yes');
  const hold = (holder: pg.PoolClient) =>
    holder.query('SELECT 1 FROM organizations WHERE org_id = $1 FOR NO KEY UPDATE', [orgId]);
  const confirm = (operator: string) => () => reissue(orgId, operator, '--yes', '--json');
  const answers = await raceBehind(api.connection.pool, { hold }, [confirm('bo'), confirm('cy')]);
  const keyIds = answers.map(({ printed }) => JSON.parse(printed.join('')).key_id);
  expect(keyIds.filter((keyId) => keyId !== null)).toHaveLength(1);
});

test('one operator alone gets no key, however the name is spelled', async ({ api, reissue }) => {
  const { orgId } = await api.createCaller();
  await reissue(orgId, 'ana', '--yes');
  await expectUnchanged(api.connection.pool, async () => {
    const { exitCode, printed, warned } = await reissue(orgId, ' ANA ', '--yes');
    expect([exitCode, printed, warned.length]).toEqual([1, [], 1]);
  });
});

test('a request counts for its own organization alone, for a day: otherwise the next operator only requests', async ({
  api,
  reissue,
  clock,
}) => {
  const [{ orgId }, other] = [await api.createCaller(), await api.createCaller()];
  await reissue(orgId, 'ana', '--yes');
  expect((await reissue(other.orgId, 'bo', '--yes')).printed[0]).toMatch(/^Requested\./);
  clock.advance(DAY_MS);
  expect((await reissue(orgId, 'bo', '--yes')).printed[0]).toMatch(/^Requested\./);
});

test('a preview shows no key that would not work, and writes nothing', async ({ api, reissue }) => {
  const { orgId } = await api.createCaller();
  await reissue(orgId, 'ana', '--yes');
  await expectUnchanged(api.connection.pool, async () => {
    const results = [await reissue(orgId, 'bo'), await reissue(orgId, 'bo', '--json')];
    expect(results.map(({ exitCode }) => exitCode)).toEqual([3, 3]);
    expect(JSON.stringify(results)).not.toContain('sk_local_');
  });
});

test.for([
  ['an unknown organization', 'no-such-organization'],
  ['a consumer', 'consumer'],
  ['an organization of another environment', 'other'],
])('%s gets no key', async ([, orgId = ''], { api, reissue }) => {
  for (const [id, kind, environment] of [
    ['consumer', 'consumer', 'local sandbox'],
    ['other', 'partner', 'production'],
  ])
    await api.connection.pool.query(
      `INSERT INTO organizations (org_id, kind, name, country, contact_email, environment, created_at)
       VALUES ($1, $2, 'Other', 'JM', 'other@mail.example', $3, now()) ON CONFLICT DO NOTHING`,
      [id, kind, environment],
    );
  await expectUnchanged(api.connection.pool, async () => {
    expect(await reissue(orgId, 'ana', '--yes')).toMatchObject({ exitCode: 1, printed: [] });
  });
});
