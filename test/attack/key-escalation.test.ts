/**
 * A key makes no key that may do more than itself (contract §3): not by creation, not by rotation of a stronger key. A
 * leaked key is revoked with everything that it made. A rotated key repeats its own rotation, and nothing else.
 */
import { describe, expect } from 'vitest';
import { type AddressBlock, parseBlock } from '../../domain/network-address.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { callerOf, jsonOf } from '../support/partner.ts';
import { expectInvalid, expectRefused } from '../support/refusal.ts';

const PROXY: AddressBlock = parseBlock('127.0.0.1') ?? expect.unreachable();
const test = withApi({ config: { trustedProxies: [PROXY] } });

const SECOND_MS = 1_000;
const DAY_MS = 86_400 * SECOND_MS;
const INSIDE = { 'x-forwarded-for': '203.0.113.7' };
const later = (ms: number) => new Date(Date.now() + ms).toISOString();

const create = (api: TestApi, caller: Caller, body: object, headers: Record<string, string> = INSIDE) =>
  api.call(caller, 'POST', `/v1/orgs/${caller.orgId}/keys`, { name: 'made', scope: 'full', ...body }, headers);
const rotate = (api: TestApi, caller: Caller, keyId: string, headers: Record<string, string> = {}, body?: unknown) =>
  api.call(caller, 'POST', `/v1/orgs/keys/${keyId}/rotate`, body, { ...INSIDE, ...headers });
const revoke = (api: TestApi, caller: Caller, keyId: string, query = '?descendants=true') =>
  api.call(caller, 'DELETE', `/v1/orgs/keys/${keyId}${query}`);
const statusOf = async (api: TestApi, caller: Caller, headers: Record<string, string> = INSIDE) =>
  (await api.call(caller, 'GET', '/v1/wallets', undefined, headers)).statusCode;

/** A full key that is valid for a few minutes, from one /24. */
async function limitedKey(api: TestApi) {
  const owner = await api.createCaller();
  const expiresAt = new Date(Date.now() + 300 * SECOND_MS);
  const limited = await api.createKey(owner.orgId, 'full', { expiresAt, allowedCidrs: ['203.0.113.0/24'] });
  return { owner, limited, expiresAt: expiresAt.toISOString() };
}

describe('a key that expires and is bound to addresses', () => {
  test('gives the key that it makes both limits, where the request names none', async ({ api }) => {
    const { limited, expiresAt } = await limitedKey(api);
    const made = await create(api, limited, {});
    expect([made.statusCode, jsonOf(made)]).toEqual([
      201,
      expect.objectContaining({
        expires_at: expiresAt,
        allowed_cidrs: ['203.0.113.0/24'],
        created_by: limited.keyId,
      }),
    ]);
    expect(await statusOf(api, callerOf(jsonOf(made)), {})).toBe(401);
  });

  test.for<[string, object, [string, string][]]>([
    ['a later expiry', { expires_at: later(DAY_MS) }, [['body.expires_at', 'value_error']]],
    ['another network', { allowed_cidrs: ['198.51.100.0/24'] }, [['body.allowed_cidrs.0', 'value_error']]],
    ['a wider network', { allowed_cidrs: ['203.0.113.9', '203.0.0.0/16'] }, [['body.allowed_cidrs.1', 'value_error']]],
    ['an IPv6 network', { allowed_cidrs: ['2001:db8::/32'] }, [['body.allowed_cidrs.0', 'value_error']]],
    [
      'both',
      { expires_at: later(DAY_MS), allowed_cidrs: ['128.0.0.0/1'] },
      [
        ['body.expires_at', 'value_error'],
        ['body.allowed_cidrs.0', 'value_error'],
      ],
    ],
  ])('makes no key with %s', async ([_case, body, faults], { api }) => {
    const { limited } = await limitedKey(api);
    await expectInvalid(api, () => create(api, limited, body), faults);
  });

  test('makes a key with less', async ({ api }) => {
    const { limited } = await limitedKey(api);
    const less = {
      scope: 'read',
      expires_at: later(120 * SECOND_MS),
      allowed_cidrs: ['203.0.113.64/26', '::ffff:203.0.113.9'],
    };
    expect((await create(api, limited, less)).statusCode).toBe(201);
  });

  test('does not rotate a key that has fewer limits, and would so get its successor', async ({ api }) => {
    const { owner, limited } = await limitedKey(api);
    for (const keyId of [owner.keyId, (await api.createKey(owner.orgId, 'read')).keyId])
      await expectRefused(api, () => rotate(api, limited, keyId), 409, { current_state: 'exceeds_caller' });
    const weaker = callerOf(jsonOf(await create(api, limited, { scope: 'read' })));
    expect((await rotate(api, limited, weaker.keyId)).statusCode).toBe(200);
    expect((await rotate(api, limited, limited.keyId)).statusCode).toBe(200);
  });
});

describe('the Idempotency-Key of a request that showed a key', () => {
  const KEYED = { ...INSIDE, 'idempotency-key': 'shows-a-key-2026' };

  test.for([
    ['creation', (api: TestApi, caller: Caller) => create(api, caller, {}, KEYED)],
    ['rotation', (api: TestApi, caller: Caller, other: Caller) => rotate(api, caller, other.keyId, KEYED)],
  ] as const)('shows a key that was made by %s to no key with more limits', async ([_case, make], { api }) => {
    const { owner, limited } = await limitedKey(api);
    const other = await api.createKey(owner.orgId, 'full');
    const first = await make(api, owner, other);
    expect(jsonOf(first).api_key).toEqual(expect.any(String));
    await expectRefused(api, () => make(api, limited, other), 409, { current_state: 'exceeds_caller' });
    const peer = await api.createKey(owner.orgId, 'full');
    for (const caller of [owner, peer]) {
      const again = await make(api, caller, other);
      expect([again.body, again.headers['idempotency-replayed']]).toEqual([first.body, 'true']);
    }
  });

  test('shows it again to the limited key that made it', async ({ api }) => {
    const { limited } = await limitedKey(api);
    const first = await create(api, limited, {}, KEYED);
    expect([(await create(api, limited, {}, KEYED)).body, first.statusCode]).toEqual([first.body, 201]);
  });
});

describe('a revocation with descendants', () => {
  test('ends what the key, its predecessors and its descendants made, and nothing else', async ({ api }) => {
    const owner = await api.createCaller();
    const make = async (by: Caller) => callerOf(jsonOf(await create(api, by, {}, {})));
    const leaked = await make(owner);
    const child = await make(leaked);
    const grandchild = await make(child);
    const successor = callerOf(jsonOf(await rotate(api, leaked, leaked.keyId)));
    const laterChild = await make(successor);
    const rotatedByIt = callerOf(jsonOf(await rotate(api, successor, (await make(owner)).keyId)));
    const bystander = await make(owner);
    const answer = await revoke(api, owner, successor.keyId);
    const ended = [child, grandchild, laterChild, rotatedByIt];
    expect(answer.statusCode).toBe(200);
    expect(new Set(jsonOf(answer).revoked_descendants)).toEqual(new Set(ended.map(({ keyId }) => keyId)));
    for (const key of [successor, ...ended]) expect(await statusOf(api, key)).toBe(401);
    for (const key of [owner, bystander]) expect(await statusOf(api, key)).toBe(200);
    const { rows } = await api.connection.pool.query(
      `SELECT DISTINCT object_id FROM events WHERE org_id = $1 AND type = 'api_key.revoked'`,
      [owner.orgId],
    );
    expect(rows).toHaveLength(1 + ended.length);
  });

  test('also ends them when the key itself was revoked before', async ({ api }) => {
    const owner = await api.createCaller();
    const leaked = callerOf(jsonOf(await create(api, owner, {}, {})));
    const child = callerOf(jsonOf(await create(api, leaked, {}, {})));
    expect(jsonOf(await revoke(api, owner, leaked.keyId, '')).revoked_descendants).toEqual([]);
    expect(await statusOf(api, child)).toBe(200);
    expect(jsonOf(await revoke(api, owner, leaked.keyId)).revoked_descendants).toEqual([child.keyId]);
    expect(await statusOf(api, child)).toBe(401);
  });

  test('ends the successors of a key that has rotated itself, in one request', async ({ api }) => {
    const owner = await api.createCaller();
    const leaked = await api.createKey(owner.orgId, 'full');
    const second = callerOf(jsonOf(await rotate(api, leaked, leaked.keyId)));
    const child = callerOf(jsonOf(await create(api, second, {}, {})));
    const third = callerOf(jsonOf(await rotate(api, second, second.keyId)));
    await expectRefused(api, () => revoke(api, owner, leaked.keyId, ''), 409, { rotated_to: second.keyId });
    const answer = await revoke(api, owner, leaked.keyId);
    expect([answer.statusCode, jsonOf(answer)]).toEqual([
      200,
      expect.objectContaining({ status: 'rotated', revoked_descendants: [child.keyId, third.keyId] }),
    ]);
    for (const key of [child, third]) expect(await statusOf(api, key)).toBe(401);
    expect(await statusOf(api, owner)).toBe(200);
  });

  test('409 last_full_key when no other full key would be left', async ({ api }) => {
    const owner = await api.createCaller();
    await create(api, owner, {}, {});
    await expectRefused(api, () => revoke(api, owner, owner.keyId), 409, { code: 'last_full_key' });
  });

  test('409 last_full_key when the successor of a rotated key is the last full one', async ({ api }) => {
    const owner = await api.createCaller();
    const successor = callerOf(jsonOf(await rotate(api, owner, owner.keyId)));
    await expectRefused(api, () => revoke(api, successor, owner.keyId), 409, { code: 'last_full_key' });
  });
});

describe('a self-rotation with an Idempotency-Key', () => {
  const KEYED = { 'idempotency-key': 'rotate-2026-11-23' };

  test('is repeated by the rotated key for 24 hours, with the same secret', async ({ api, clock }) => {
    const { limited } = await limitedKey(api);
    const key = await api.createKey(limited.orgId, 'read', { allowedCidrs: ['203.0.113.0/24'] });
    const first = await rotate(api, key, key.keyId, KEYED);
    expect(first.statusCode).toBe(200);
    const again = await rotate(api, key, key.keyId, KEYED);
    expect([again.statusCode, again.body]).toEqual([200, first.body]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(await statusOf(api, callerOf(jsonOf(first)))).toBe(200);
    // From an address that the key does not allow it is unknown.
    expect((await rotate(api, key, key.keyId, { ...KEYED, 'x-forwarded-for': '198.51.100.1' })).statusCode).toBe(401);
    clock.advance(DAY_MS);
    expect((await rotate(api, key, key.keyId, KEYED)).statusCode).toBe(401);
  });

  test('leaves the rotated key nothing else', async ({ api }) => {
    const owner = await api.createCaller();
    const key = await api.createKey(owner.orgId, 'full');
    const other = await api.createKey(owner.orgId, 'read');
    await create(api, key, {}, { 'idempotency-key': 'another-command-1' });
    expect((await rotate(api, key, key.keyId, KEYED)).statusCode).toBe(200);
    for (const request of [
      () => rotate(api, key, key.keyId),
      () => rotate(api, key, key.keyId, { 'idempotency-key': 'another-command-1' }),
      () => rotate(api, key, key.keyId, { 'idempotency-key': 'another-command-2' }),
      () => rotate(api, key, other.keyId, KEYED),
      () => create(api, key, {}, KEYED),
      () => revoke(api, key, other.keyId),
    ])
      await expectRefused(api, request, 401, { code: 'credential_invalid' });
    await expectRefused(api, () => rotate(api, key, key.keyId, KEYED, {}), 409, { code: 'idempotency_key_reused' });
  });

  test('shows the successor to no key that another one has rotated', async ({ api }) => {
    const owner = await api.createCaller();
    const leaked = await api.createKey(owner.orgId, 'full');
    const first = await rotate(api, owner, leaked.keyId, KEYED);
    expect(first.statusCode).toBe(200);
    await expectRefused(api, () => rotate(api, leaked, leaked.keyId, KEYED), 401);
    expect((await rotate(api, owner, leaked.keyId, KEYED)).body).toBe(first.body);
  });
});
