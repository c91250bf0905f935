/** `key revoke`: an operator ends a leaked key by its id or its beginning, with everything that it made. */
import { expect, vi } from 'vitest';
import type { Caller, TestApi } from '../support/api.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps, listAudit } from '../support/ops.ts';
import { callerOf } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';

const AUDIT_ARGS = ['--operator', 'ana', '--note', 'found on a paste site'];

const test = withApi().extend('revoke', FILE, ({ api, clock }) => {
  const ops = createOps(api.connection.db, { now: clock.now });
  return (key: string, ...rest: string[]) => ops('key', 'revoke', key, ...AUDIT_ARGS, ...rest);
});

const make = async (api: TestApi, by: Caller): Promise<Caller> => {
  const answer = await api.call(by, 'POST', `/v1/orgs/${by.orgId}/keys`, { name: 'made', scope: 'full' });
  return callerOf(answer.json());
};
const statusOf = async (api: TestApi, caller: Caller) => (await api.call(caller, 'GET', '/v1/wallets')).statusCode;

test('a revoked key and what it made get 401 at once, and nothing else of the organization does', async ({
  api,
  revoke,
}) => {
  const owner = await api.createCaller();
  const leaked = await make(api, owner);
  const child = await make(api, leaked);
  const bystander = await make(api, owner);
  const { exitCode, printed } = await revoke(leaked.keyId, '--yes', '--json');
  expect([exitCode, JSON.parse(printed.join(''))]).toEqual([
    0,
    { organization: owner.orgId, revoked: [leaked.keyId, child.keyId], has_full_key: true },
  ]);
  const statuses = [];
  for (const caller of [leaked, child, owner, bystander]) statuses.push(await statusOf(api, caller));
  expect(statuses).toEqual([401, 401, 200, 200]);
  const { rows } = await api.connection.pool.query(
    `SELECT object_id FROM events WHERE org_id = $1 AND type = 'api_key.revoked' ORDER BY created_at, object_id`,
    [owner.orgId],
  );
  expect(rows.map(({ object_id: id }) => id).toSorted()).toEqual([leaked.keyId, child.keyId].toSorted());
  for (const { keyId } of [leaked, child])
    expect(await listAudit(api.connection.db, keyId)).toEqual([
      { orgId: owner.orgId, action: 'key_revoke', operator: 'ana', note: 'found on a paste site' },
    ]);
});

test('the last full key ends as well, and the way back is named: two operators give the organization a new one', async ({
  api,
  revoke,
}) => {
  const owner = await api.createCaller();
  const preview = JSON.parse((await revoke(owner.keyId, '--json')).printed.join('')).preview;
  expect(preview).toEqual({ organization: owner.orgId, revoked: [owner.keyId], has_full_key: false });
  const { printed } = await revoke(owner.keyId, '--yes');
  expect(printed.at(-1)).toContain(`org reissue-key ${owner.orgId}`);
  expect(await statusOf(api, owner)).toBe(401);
});

test.for([25 * 3_600_000, -25 * 3_600_000])(
  'a key that expires within a day ends by a machine whose clock is %s ms ahead, and its event is dated rightly',
  async (aheadMs, { api, revoke }) => {
    const owner = await api.createCaller();
    const { keyId } = await api.createKey(owner.orgId, 'read', { expiresAt: new Date(Date.now() + 3_600_000) });
    const startedMs = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: startedMs + aheadMs });
    const { exitCode, warned } = await revoke(keyId, '--yes').finally(() => vi.useRealTimers());
    expect([exitCode, warned]).toEqual([0, []]);
    const { rows } = await api.connection.pool.query(
      `SELECT created_at FROM events WHERE object_id = $1 UNION ALL
       SELECT revoked_at FROM api_keys WHERE key_id = $1 UNION ALL SELECT at FROM audit_entries WHERE object_id = $1`,
      [keyId],
    );
    expect(rows.map(({ created_at: at }) => Math.abs(at.getTime() - startedMs) < 60_000)).toEqual([true, true, true]);
  },
);

test.for([200, -200])(
  'a key is revoked on a machine whose clock is off by %s days, and its event and its audit entry have ids of today',
  async (daysAhead, { api, revoke }) => {
    const { keyId } = await api.createCaller();
    const startedMs = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: startedMs + daysAhead * 86_400_000 });
    const { exitCode, warned } = await revoke(keyId, '--yes').finally(() => vi.useRealTimers());
    expect([exitCode, warned]).toEqual([0, []]);
    const { rows } = await api.connection.pool.query(
      `SELECT time_of_id(event_id) AS at FROM events WHERE object_id = $1 AND type = 'api_key.revoked'
       UNION ALL SELECT time_of_id(audit_id) FROM audit_entries WHERE object_id = $1`,
      [keyId],
    );
    expect(rows.map(({ at }) => Math.abs(at.getTime() - startedMs) < 60_000)).toEqual([true, true]);
  },
);

test('--alone leaves what the key made', async ({ api, revoke }) => {
  const owner = await api.createCaller();
  const child = await make(api, owner);
  await revoke(owner.keyId, '--alone', '--yes');
  expect([await statusOf(api, owner), await statusOf(api, child)]).toEqual([401, 200]);
});

test('a rotated key is no end: the keys that took its place are revoked', async ({ api, revoke }) => {
  const owner = await api.createCaller();
  const rotated = await api.call(owner, 'POST', `/v1/orgs/keys/${owner.keyId}/rotate`);
  await revoke(owner.keyId, '--yes');
  expect(await statusOf(api, callerOf(rotated.json()))).toBe(401);
});

test('a key is found by the beginning of the leaked text, which is never repeated', async ({ api, revoke }) => {
  const leaked = await api.createCaller();
  await api.connection.pool.query(`UPDATE api_keys SET prefix = 'sk_local_one' WHERE key_id = $1`, [leaked.keyId]);
  const results = [await revoke(`sk_local_one${'x'.repeat(46)}`), await revoke(`sk_local_two${'x'.repeat(46)}`)];
  expect(results.map(({ exitCode }) => exitCode)).toEqual([3, 1]);
  expect(JSON.stringify(results)).not.toContain('xxx');
  expect((await revoke('sk_local_one', '--yes')).exitCode).toBe(0);
  expect(await statusOf(api, leaked)).toBe(401);
});

test('a beginning that several keys share revokes none of them, and lists them', async ({ api, revoke }) => {
  const callers = [await api.createCaller(), await api.createCaller()];
  const ids = callers.map(({ keyId }) => keyId);
  await api.connection.pool.query(`UPDATE api_keys SET prefix = 'sk_local_two' WHERE key_id = ANY ($1)`, [ids]);
  await expectUnchanged(api.connection.pool, async () => {
    const { exitCode, warned } = await revoke('sk_local_two', '--yes');
    expect([exitCode, ids.filter((id) => warned.join('\n').includes(id))]).toEqual([1, ids]);
  });
});

test('the preview names every key that would end, and changes nothing', async ({ api, revoke }) => {
  const owner = await api.createCaller();
  const child = await make(api, owner);
  await expectUnchanged(api.connection.pool, async () => {
    const { exitCode, printed } = await revoke(owner.keyId);
    expect(exitCode).toBe(3);
    for (const { keyId } of [owner, child]) expect(printed.join('\n')).toContain(`Preview: ${keyId} is revoked`);
  });
});

test.for<[string, (caller: Caller) => string]>([
  ['an unknown key', () => 'no-such-key'],
  ['a revoked key that made none', ({ keyId }) => keyId],
])('%s is refused, and nothing is written', async ([, nameOf], { api, revoke }) => {
  const owner = await api.createCaller();
  await revoke(owner.keyId, '--yes');
  await expectUnchanged(api.connection.pool, async () => {
    expect(await revoke(nameOf(owner), '--yes')).toMatchObject({ exitCode: 1, printed: [] });
  });
});

test('a key of another environment is not found', async ({ api, revoke }) => {
  const { orgId } = await api.createCaller();
  const { keyId } = await api.createKey(orgId, 'full', { environment: 'production' });
  expect((await revoke(keyId, '--yes')).exitCode).toBe(1);
});
