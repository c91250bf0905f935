/** Keys and their management (contract §3). */
import type pg from 'pg';
import { describe, expect } from 'vitest';
import { ACTIVE_KEYS_MAX } from '../../domain/api-key.ts';
import { SCOPES } from '../../domain/scope.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { dumpTables, raceBehind } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { callerOf, type Json, jsonOf } from '../support/partner.ts';
import { expectInvalid, expectRefused, expectUnchanged } from '../support/refusal.ts';
import { subscribe } from '../support/webhook.ts';

const HOUR_MS = 3_600_000;

const test = withApi();

const inAnHour = () => new Date(Date.now() + HOUR_MS).toISOString();
const create = (api: TestApi, caller: Caller, body: unknown, orgId = caller.orgId) =>
  api.call(caller, 'POST', `/v1/orgs/${orgId}/keys`, body);
const list = async (api: TestApi, caller: Caller): Promise<Json[]> =>
  jsonOf(await api.call(caller, 'GET', `/v1/orgs/${caller.orgId}/keys`));
const rotate = (api: TestApi, caller: Caller, keyId: string) =>
  api.call(caller, 'POST', `/v1/orgs/keys/${keyId}/rotate`);
const revoke = (api: TestApi, caller: Caller, keyId: string, query = '') =>
  api.call(caller, 'DELETE', `/v1/orgs/keys/${keyId}${query}`);
const find = async (api: TestApi, caller: Caller, keyId: string): Promise<Json> =>
  (await list(api, caller)).find((key) => key.key_id === keyId);
/** For `raceBehind`: changes of the organization's keys wait. */
const holdingKeysOf = ({ orgId }: Caller) => ({
  hold: (holder: pg.PoolClient) => holder.query('SELECT 1 FROM organizations WHERE org_id = $1 FOR UPDATE', [orgId]),
});
/** As `holdingKeysOf`, and this key is revoked before the waiting requests continue. */
const revoking = (caller: Caller) => ({
  ...holdingKeysOf(caller),
  change: (holder: pg.PoolClient) =>
    holder.query(`UPDATE api_keys SET status = 'revoked' WHERE key_id = $1`, [caller.keyId]),
});
const statusesOf = (answers: readonly { statusCode: number }[]): number[] =>
  answers.map(({ statusCode }) => statusCode).sort((a, b) => a - b);
const works = async (api: TestApi, caller: Caller): Promise<boolean> =>
  (await api.call(caller, 'GET', `/v1/orgs/${caller.orgId}`)).statusCode === 200;

describe('POST /v1/orgs/{org_id}/keys', () => {
  test('429 beyond the active keys that an organization may have, also for requests at once', async ({ api }) => {
    const caller = await api.createCaller();
    for (let n = 2; n < ACTIVE_KEYS_MAX; n += 1) await api.createKey(caller.orgId, 'read');
    // Keys that are not valid do not count.
    await api.createKey(caller.orgId, 'read', { status: 'revoked', revokedAt: new Date() });
    await api.createKey(caller.orgId, 'read', { expiresAt: new Date(Date.now() - HOUR_MS) });
    const minted = () => create(api, caller, { name: 'one more', scope: 'read' });
    expect(statusesOf(await Promise.all([minted(), minted(), minted()]))).toEqual([201, 429, 429]);
    expect(jsonOf(await minted())).toMatchObject({ code: 'quota_exceeded', quota: 'api_keys' });
    expect((await rotate(api, caller, caller.keyId)).statusCode).toBe(200);
  });

  test.for([
    ['without a UTC offset', '2999-01-01T00:00:00'],
    ['after the year 9999 in UTC', '9999-12-31T23:59:59-12:00'],
  ] as const)('422 for an expiry %s, and nothing is written', async ([_case, expires_at], { api }) => {
    const caller = await api.createCaller('full');
    await expectInvalid(api, () => create(api, caller, { name: 'a', scope: 'read', expires_at }), [
      ['body.expires_at', 'value_error'],
    ]);
  });

  test('422 for an expiry at this very moment', async ({ api, clock }) => {
    const caller = await api.createCaller('full');
    clock.stop(new Date('2026-11-21T08:00:00.000Z'));
    const at = (milliseconds: string) =>
      create(api, caller, { name: 'a', scope: 'read', expires_at: `2026-11-21T08:00:00.${milliseconds}Z` });
    expect([(await at('000')).statusCode, (await at('001')).statusCode]).toEqual([422, 201]);
  });

  test('422 lists an expiry in the past with the faults of the form', async ({ api }) => {
    const caller = await api.createCaller('full');
    const body = { name: '', scope: 'read', expires_at: '2020-01-01T00:00:00Z' };
    await expectInvalid(api, () => create(api, caller, body), [
      ['body.name', 'string_too_short'],
      ['body.expires_at', 'value_error'],
    ]);
  });

  test('422 for an expiry in the past, whichever organization the path names', async ({ api }) => {
    const caller = await api.createCaller('full');
    const { orgId } = await api.createCaller('read');
    const body = { name: 'Late', scope: 'read', expires_at: '2020-01-01T00:00:00Z' };
    for (const named of [caller.orgId, orgId])
      await expectInvalid(api, () => create(api, caller, body, named), [['body.expires_at', 'value_error']]);
  });

  test.for(SCOPES)(
    '201 with a key of scope %s that works at once, and its secret value only here',
    async (scope, { api }) => {
      const caller = await api.createCaller('full');
      const answer = await create(api, caller, { name: 'Payout service', scope });
      expect(answer.statusCode).toBe(201);
      const { api_key, ...key } = jsonOf(answer);
      expect(key).toEqual({
        key_id: expect.any(String),
        org_id: caller.orgId,
        name: 'Payout service',
        scope,
        status: 'active',
        environment: 'local sandbox',
        prefix: api_key.slice(0, 12),
        created_at: expect.any(String),
        last_used_at: null,
        last_used_from: null,
        allowed_cidrs: null,
        expires_at: null,
        revoked_at: null,
        rotated_to: null,
        created_by: caller.keyId,
      });
      expect(await find(api, caller, key.key_id)).toEqual(key);
      expect(await works(api, callerOf({ ...key, api_key }))).toBe(true);
      expect(await dumpTables(api.connection.pool)).not.toContain(api_key.slice(12));
    },
  );

  test('201 with the expiry in UTC, whatever its offset', async ({ api }) => {
    const caller = await api.createCaller('full');
    const answer = await create(api, caller, { name: 'a', scope: 'read', expires_at: '2999-01-01T00:00:00-05:00' });
    expect([answer.statusCode, jsonOf(answer).expires_at]).toEqual([201, '2999-01-01T05:00:00.000Z']);
  });

  test('401 for a key that is revoked while its request waits, and no key is created', async ({ api }) => {
    const caller = await api.createCaller('full');
    const { pool } = api.connection;
    const [answer] = await raceBehind(pool, revoking(caller), [
      () => create(api, caller, { name: 'a', scope: 'full' }),
    ]);
    expect(answer?.statusCode).toBe(401);
    const { rows } = await pool.query(`SELECT status FROM api_keys WHERE org_id = $1`, [caller.orgId]);
    expect(rows).toEqual([{ status: 'revoked' }]);
  });
});

describe('GET /v1/orgs/{org_id}/keys', () => {
  test('200 with every key in pages, newest first, without their secret values', async ({ api }) => {
    const caller = await api.createCaller('full');
    const keys: Json[] = [];
    for (const name of ['one', 'two', 'three']) keys.push(jsonOf(await create(api, caller, { name, scope: 'read' })));
    expect((await list(api, caller)).map((key) => key.key_id)).toEqual([
      ...keys.map((key) => key.key_id).reverse(),
      caller.keyId,
    ]);
    const page = await api.call(caller, 'GET', `/v1/orgs/${caller.orgId}/keys?limit=2&offset=1`);
    expect(jsonOf(page).map((key: Json) => key.name)).toEqual(['two', 'one']);
    expect(page.headers).toMatchObject({
      'x-total-count': '4',
      link: [
        `</v1/orgs/${caller.orgId}/keys?limit=2&offset=3>; rel="next"`,
        `</v1/orgs/${caller.orgId}/keys?limit=2&offset=0>; rel="prev"`,
      ].join(', '),
    });
    for (const { api_key } of keys) expect(page.body).not.toContain(api_key.slice(12));
  });

  test('200 with a key past its expiry as expired', async ({ api }) => {
    const caller = await api.createCaller('full');
    const past = new Date(Date.now() - HOUR_MS);
    const key = await api.createKey(caller.orgId, 'read', { expiresAt: past });
    expect(await find(api, caller, key.keyId)).toMatchObject({ status: 'expired', expires_at: past.toISOString() });
  });

  test('200 with the last use of a key, at most a minute old', async ({ api, clock }) => {
    clock.stop(new Date('2026-11-21T08:00:00.000Z'));
    const caller = await api.createCaller('full');
    const lastUsed = async () => jsonOf(await api.call(caller, 'GET', `/v1/orgs/${caller.orgId}/keys`))[0].last_used_at;
    await lastUsed();
    await expect.poll(lastUsed).toBe('2026-11-21T08:00:00.000Z');
    clock.stop(new Date('2026-11-21T08:01:00.001Z'));
    await expect.poll(lastUsed).toBe('2026-11-21T08:01:00.001Z');
  });
});

describe('POST /v1/orgs/keys/{key_id}/rotate', () => {
  test.for(['read', 'recipients', 'compliance', 'settle'] as const)(
    '403 for a key of scope %s that rotates another key, and nothing is written',
    async (scope, { api }) => {
      const owner = await api.createCaller('full');
      const caller = await api.createKey(owner.orgId, scope);
      for (const keyId of [owner.keyId, 'unknown', 'x'.repeat(37)])
        await expectRefused(api, () => rotate(api, caller, keyId), 403, { required_scope: 'full' });
    },
  );

  test.for([
    ['revoked', { status: 'revoked', revokedAt: new Date() }],
    ['rotated', { status: 'rotated', rotatedTo: 'a-successor' }],
    ['expired', { expiresAt: new Date(Date.now() - HOUR_MS) }],
  ] as const)('409 for a key that is %s, and nothing is written', async ([state, stored], { api }) => {
    const caller = await api.createCaller('full');
    const key = await api.createKey(caller.orgId, 'read', stored);
    const conflict = { code: 'state_conflict', current_state: state };
    await expectRefused(api, () => rotate(api, caller, key.keyId), 409, conflict);
  });

  test.for(SCOPES)(
    '200 when a key of scope %s rotates itself: the old key is invalid, the new one has its properties',
    async (scope, { api }) => {
      const owner = await api.createCaller('full');
      const expiresAt = new Date(inAnHour());
      const old = await api.createKey(owner.orgId, scope, { name: 'Payout service', expiresAt });
      const answer = await rotate(api, old, old.keyId);
      expect(answer.statusCode).toBe(200);
      const { api_key, rotated_from, ...successor } = jsonOf(answer);
      expect(rotated_from).toBe(old.keyId);
      expect(successor).toMatchObject({
        name: 'Payout service',
        scope,
        status: 'active',
        environment: 'local sandbox',
        expires_at: expiresAt.toISOString(),
        rotated_to: null,
      });
      expect(await works(api, old)).toBe(false);
      expect(await works(api, callerOf({ ...successor, api_key }))).toBe(true);
      expect(await find(api, owner, old.keyId)).toMatchObject({
        status: 'rotated',
        rotated_to: successor.key_id,
        revoked_at: null,
      });
    },
  );

  test('200 when a full key rotates another key, also with an empty JSON body', async ({ api }) => {
    const owner = await api.createCaller('full');
    const key = await api.createKey(owner.orgId, 'settle');
    const answer = await api.call(owner, 'POST', `/v1/orgs/keys/${key.keyId}/rotate`, '', {
      'content-type': 'application/json',
    });
    expect([answer.statusCode, jsonOf(answer).scope]).toEqual([200, 'settle']);
    expect(await works(api, key)).toBe(false);
  });

  test('200 when the last full key rotates itself: its successor is a full key', async ({ api }) => {
    const caller = await api.createCaller('full');
    const successor = callerOf(jsonOf(await rotate(api, caller, caller.keyId)));
    expect((await create(api, successor, { name: 'a', scope: 'full' })).statusCode).toBe(201);
  });

  test('200 for one of the rotations at the same moment, 409 for the others, and one successor', async ({ api }) => {
    const owner = await api.createCaller('full');
    const key = await api.createKey(owner.orgId, 'read');
    const tasks = [
      () => rotate(api, key, key.keyId),
      () => rotate(api, key, key.keyId),
      () => rotate(api, owner, key.keyId),
      () => rotate(api, owner, key.keyId),
    ];
    const answers = await raceBehind(api.connection.pool, holdingKeysOf(owner), tasks);
    expect(statusesOf(answers)).toEqual([200, 409, 409, 409]);
    const losers = answers.filter(({ statusCode }) => statusCode === 409).map(jsonOf);
    expect(losers.map(({ code, current_state }) => [code, current_state])).toEqual(
      losers.map(() => ['state_conflict', 'rotated']),
    );
    expect((await list(api, owner)).filter(({ scope }) => scope === 'read')).toHaveLength(2);
  });

  test('401 for a full key that is revoked while it rotates another key, and no successor is created', async ({
    api,
  }) => {
    const owner = await api.createCaller('full');
    const key = await api.createKey(owner.orgId, 'read');
    const [answer] = await raceBehind(api.connection.pool, revoking(owner), [() => rotate(api, owner, key.keyId)]);
    expect(answer?.statusCode).toBe(401);
    expect(await works(api, key)).toBe(true);
  });

  test('401 for a key that is revoked while it rotates itself', async ({ api }) => {
    const key = await api.createCaller('read');
    const [answer] = await raceBehind(api.connection.pool, revoking(key), [() => rotate(api, key, key.keyId)]);
    expect(answer?.statusCode).toBe(401);
  });
});

describe('DELETE /v1/orgs/keys/{key_id}', () => {
  test('409 with the successor of a rotated key, which the caller may want to revoke', async ({ api }) => {
    const owner = await api.createCaller('full');
    const key = await api.createKey(owner.orgId, 'read');
    const { key_id } = jsonOf(await rotate(api, owner, key.keyId));
    const answer = await revoke(api, owner, key.keyId);
    expect([answer.statusCode, jsonOf(answer)]).toEqual([
      409,
      expect.objectContaining({ code: 'state_conflict', current_state: 'rotated', rotated_to: key_id }),
    ]);
  });

  test.for<[string, (api: TestApi, orgId: string) => Promise<unknown>]>([
    ['the only key', async () => undefined],
    ['the only full key', (api, orgId) => api.createKey(orgId, 'settle')],
    [
      'the only full key that has not expired',
      (api, orgId) => api.createKey(orgId, 'full', { expiresAt: new Date(Date.now() - HOUR_MS) }),
    ],
    [
      'the only full key that was not revoked',
      (api, orgId) => api.createKey(orgId, 'full', { status: 'revoked', revokedAt: new Date() }),
    ],
  ])('409 last_full_key for %s, and nothing is written', async ([_case, prepare], { api }) => {
    const caller = await api.createCaller('full');
    await prepare(api, caller.orgId);
    await expectRefused(api, () => revoke(api, caller, caller.keyId), 409, { code: 'last_full_key' });
    expect(await works(api, caller)).toBe(true);
  });

  test('409 last_full_key with descendants says how to revoke the others, if the own key is one of them', async ({
    api,
  }) => {
    const first = await api.createCaller('full');
    const own = callerOf(jsonOf(await create(api, first, { name: 'own', scope: 'full' })));
    const made = callerOf(jsonOf(await create(api, first, { name: 'leaked', scope: 'full' })));
    expect(jsonOf(await revoke(api, made, first.keyId, '?descendants=true'))).toMatchObject({
      code: 'last_full_key',
      detail: expect.stringContaining('one by one'),
    });
    for (const { keyId } of [first, made]) expect((await revoke(api, own, keyId)).statusCode).toBe(200);
    expect(await works(api, own)).toBe(true);
  });

  test('200 with the revoked key, which is invalid at once; a second time changes nothing', async ({ api }) => {
    const owner = await api.createCaller('full');
    const key = await api.createKey(owner.orgId, 'settle');
    const first = await revoke(api, owner, key.keyId);
    expect([first.statusCode, jsonOf(first)]).toEqual([
      200,
      expect.objectContaining({
        key_id: key.keyId,
        status: 'revoked',
        revoked_at: expect.any(String),
        rotated_to: null,
      }),
    ]);
    expect(await works(api, key)).toBe(false);
    await expectUnchanged(api.connection.pool, async () => {
      const again = await revoke(api, owner, key.keyId);
      expect([again.statusCode, jsonOf(again)]).toEqual([200, jsonOf(first)]);
    });
  });

  test('200 for a full key that revokes itself while there is another full key', async ({ api }) => {
    const owner = await api.createCaller('full');
    const second = await api.createKey(owner.orgId, 'full');
    expect((await revoke(api, second, second.keyId)).statusCode).toBe(200);
    expect([await works(api, second), await works(api, owner)]).toEqual([false, true]);
  });

  test('200 for an expired full key, with one valid full key left', async ({ api }) => {
    const owner = await api.createCaller('full');
    const expired = await api.createKey(owner.orgId, 'full', { expiresAt: new Date(Date.now() - HOUR_MS) });
    expect((await revoke(api, owner, expired.keyId)).statusCode).toBe(200);
  });

  test.for([
    ['each other', 401],
    ['themselves', 409],
  ] as const)('one full key is left when the last two revoke %s: 200 and %s', async ([whom, status], { api }) => {
    const one = await api.createCaller('full');
    const two = await api.createKey(one.orgId, 'full');
    const [first, second] = whom === 'themselves' ? [one, two] : [two, one];
    const tasks = [() => revoke(api, one, first.keyId), () => revoke(api, two, second.keyId)];
    const answers = await raceBehind(api.connection.pool, holdingKeysOf(one), tasks);
    expect(statusesOf(answers)).toEqual([200, status]);
    expect([await works(api, one), await works(api, two)].sort()).toEqual([false, true]);
  });

  test('401 for a key that is revoked while it revokes itself with its descendants, and these stay valid', async ({
    api,
  }) => {
    const leaked = await api.createCaller('full');
    const made = callerOf(jsonOf(await create(api, leaked, { name: 'a', scope: 'full' })));
    const other = await api.createKey(leaked.orgId, 'full');
    const [answer] = await raceBehind(api.connection.pool, revoking(leaked), [
      () => revoke(api, leaked, leaked.keyId, '?descendants=true'),
    ]);
    expect([answer?.statusCode, await works(api, made), await works(api, other)]).toEqual([401, true, true]);
  });
});

describe('every change of a key is reported', () => {
  test('an event shows that a leaked key rotated itself', async ({ api }) => {
    const owner = await api.createCaller();
    const leaked = callerOf(jsonOf(await create(api, owner, { name: 'reports', scope: 'read' })));
    const taken = jsonOf(await rotate(api, leaked, leaked.keyId));
    const reported = jsonOf(await api.call(owner, 'GET', `/v1/events?type=api_key.rotated`));
    expect(reported).toEqual([
      expect.objectContaining({
        type: 'api_key.rotated',
        sequence: 2,
        data: expect.objectContaining({ key_id: leaked.keyId, status: 'rotated', rotated_to: taken.key_id }),
      }),
    ]);
    expect((await revoke(api, owner, taken.key_id)).statusCode).toBe(200);
    const events: Json[] = jsonOf(await api.call(owner, 'GET', '/v1/events'));
    expect(events.map(({ type, sequence }) => [type, sequence])).toEqual([
      ['api_key.revoked', 1],
      ['api_key.rotated', 2],
      ['api_key.created', 1],
    ]);
    expect(JSON.stringify(events)).not.toContain(taken.api_key);
    // Repeated, it changes nothing and reports nothing.
    await revoke(api, owner, taken.key_id);
    expect(jsonOf(await api.call(owner, 'GET', '/v1/events'))).toHaveLength(3);
  });

  test('a subscriber gets the event of a change as a delivery', async ({ api }) => {
    const owner = await api.createCaller();
    const { webhook_id: id } = await subscribe(api, owner, 'https://hooks.partner.example/keys', ['api_key.created']);
    await create(api, owner, { name: 'reports', scope: 'read' });
    const deliveries = jsonOf(await api.call(owner, 'GET', `/v1/webhooks/${id}/deliveries`));
    expect(deliveries).toEqual([expect.objectContaining({ event_type: 'api_key.created', status: 'pending' })]);
  });
});
