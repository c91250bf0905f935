/** Where a key is used from: the network of its last use, and the addresses that it is limited to (contract §3). */
import { describe, expect } from 'vitest';
import { ALLOWED_CIDRS_MAX } from '../../domain/api-key.ts';
import { type AddressBlock, parseBlock } from '../../domain/network-address.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { callerOf, jsonOf } from '../support/partner.ts';

const PROXY: AddressBlock = parseBlock('127.0.0.1') ?? expect.unreachable();
/** Injected requests come from the proxy, which says who its client is. */
const test = withApi({ config: { trustedProxies: [PROXY] } }).extend('direct', FILE, openApi());

const from = (address: string) => ({ 'x-forwarded-for': address });
const read = (api: TestApi, caller: Caller, headers: Record<string, string>) =>
  api.call(caller, 'GET', '/v1/wallets', undefined, headers);
const create = (api: TestApi, caller: Caller, allowed: unknown, scope = 'full') =>
  api.call(caller, 'POST', `/v1/orgs/${caller.orgId}/keys`, { name: 'limited', scope, allowed_cidrs: allowed });

async function limitedTo(api: TestApi, allowed: readonly string[]): Promise<Caller> {
  const created = await create(api, await api.createCaller(), allowed);
  expect(created.statusCode, created.body).toBe(201);
  return callerOf(jsonOf(created));
}

describe('a key that is limited to addresses', () => {
  test.for([
    ['203.0.113.0/24', ['203.0.113.0', '203.0.113.255', '::ffff:203.0.113.7'], ['203.0.112.255', '203.0.114.0']],
    ['203.0.113.7', ['203.0.113.7', '::ffff:cb00:7107'], ['203.0.113.6', '203.0.113.8', '::203.0.113.7']],
    ['::ffff:203.0.113.0/120', ['203.0.113.9', '::ffff:203.0.113.9'], ['203.0.112.9', '2001:db8::1']],
    ['2001:db8:4::/48', ['2001:db8:4::1', '2001:DB8:4:ffff::'], ['2001:db8:5::1', '203.0.113.7', '::1']],
    ['2001:db8::7', ['2001:db8::7', '2001:0db8:0:0:0:0:0:7'], ['2001:db8::8', '2001:db8::']],
    ['128.0.0.0/1', ['128.0.0.0', '255.255.255.255'], ['127.255.255.255', '8000::1']],
  ] as const)('%s works from there and from nowhere else', async ([allowed, inside, outside], { api }) => {
    const key = await limitedTo(api, [allowed]);
    for (const address of inside) expect((await read(api, key, from(address))).statusCode, address).toBe(200);
    for (const address of outside) {
      const refused = await read(api, key, from(address));
      expect([refused.statusCode, jsonOf(refused).code], address).toEqual([401, 'credential_invalid']);
    }
  });

  test('is refused with the very body of an unknown key, and costs its organization no request', async ({ api }) => {
    const key = await limitedTo(api, ['203.0.113.0/24']);
    const used = async () =>
      (await api.connection.pool.query('SELECT used FROM rate_limits WHERE caller = $1', [`org:${key.orgId}`])).rows;
    await read(api, key, from('203.0.113.1'));
    const before = await used();
    const refused = jsonOf(await read(api, key, from('198.51.100.1')));
    const { apiKey } = await api.createCaller();
    const unknownKey = apiKey.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const unknown = jsonOf(await read(api, { ...key, apiKey: unknownKey }, {}));
    expect({ ...refused, request_id: '' }).toEqual({ ...unknown, request_id: '' });
    expect(await used()).toEqual(before);
  });

  test('is not believed to be at an address that the caller only claims', async ({ api, direct }) => {
    const key = await limitedTo(api, ['203.0.113.0/24']);
    // The proxy adds what it saw at the right.
    for (const claimed of ['203.0.113.1, 198.51.100.1', '203.0.113.1,', '203.0.113.1, unknown'])
      expect((await read(api, key, from(claimed))).statusCode, claimed).toBe(401);
    expect((await read(api, key, {})).statusCode).toBe(401);
    const elsewhere = await limitedTo(direct, ['203.0.113.0/24']);
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'true-client-ip', 'cf-connecting-ip'])
      expect((await read(direct, elsewhere, { [name]: '203.0.113.1' })).statusCode, name).toBe(401);
    expect((await read(direct, await limitedTo(direct, ['127.0.0.1']), {})).statusCode).toBe(200);
  });

  test('cannot rid itself of the limit: its successor has the same', async ({ api }) => {
    const key = await limitedTo(api, ['203.0.113.0/24']);
    const rotated = await api.call(key, 'POST', `/v1/orgs/keys/${key.keyId}/rotate`, undefined, from('203.0.113.1'));
    expect([rotated.statusCode, jsonOf(rotated).allowed_cidrs]).toEqual([200, ['203.0.113.0/24']]);
    const successor = callerOf(jsonOf(rotated));
    expect((await read(api, successor, from('198.51.100.1'))).statusCode).toBe(401);
    expect((await read(api, successor, from('203.0.113.1'))).statusCode).toBe(200);
    await expect(
      api.connection.pool.query('UPDATE api_keys SET allowed_cidrs = NULL WHERE key_id = $1', [key.keyId]),
    ).rejects.toMatchObject({ code: '42501' });
  });

  test('shows each block once, in one form', async ({ api }) => {
    const created = await create(api, await api.createCaller(), [
      ...['10.1.2.3/8', '10.0.0.0/8', '::ffff:10.0.0.0/104', '192.0.2.1', '2001:DB8:0::1/32', '2001:db8::/32'],
    ]);
    expect(jsonOf(created).allowed_cidrs).toEqual(['10.0.0.0/8', '192.0.2.1/32', '2001:db8::/32']);
  });

  test('is not made with a block outside of its creator’s, which is named by its place in the request', async ({
    api,
  }) => {
    const key = await limitedTo(api, ['203.0.113.0/24']);
    const body = { name: 'wider', scope: 'read', allowed_cidrs: ['203.0.113.1', '203.0.113.1/32', '198.51.100.1'] };
    const refused = await api.call(key, 'POST', `/v1/orgs/${key.orgId}/keys`, body, from('203.0.113.1'));
    expect([refused.statusCode, jsonOf(refused).detail]).toMatchObject([422, [{ loc: ['body', 'allowed_cidrs', 2] }]]);
  });

  test('is not made with fewer or more blocks than are allowed', async ({ api }) => {
    const caller = await api.createCaller();
    const blocks = (count: number) => Array.from({ length: count }, (_, index) => `10.0.0.${index}`);
    expect((await create(api, caller, blocks(ALLOWED_CIDRS_MAX))).statusCode).toBe(201);
    for (const allowed of [blocks(ALLOWED_CIDRS_MAX + 1), []])
      expect((await create(api, caller, allowed)).statusCode).toBe(422);
    expect((await create(api, caller, null)).statusCode).toBe(201);
  });

  test.for([
    ...['0.0.0.0/0', '::/0', '::ffff:0.0.0.0/96', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0/8', '010.0.0.1', '10.0.0.0/8 '],
    ...[
      'localhost',
      '',
      '*',
      'fe80::1%eth0',
      '2001:db8::/129',
      '10.0.0.0/8,192.0.2.0/24',
      `${'0'.repeat(60)}1`,
      7,
      null,
    ],
  ])('is not made for %j', async (block, { api }) => {
    const refused = await create(api, await api.createCaller(), [block]);
    expect([refused.statusCode, jsonOf(refused).detail[0].loc]).toEqual([422, ['body', 'allowed_cidrs', 0]]);
  });
});

describe('the last use of a key', () => {
  test.for([
    ['203.0.113.77', '203.0.113.0'],
    ['2001:db8:4:5:6:7:8:9', '2001:db8:4::'],
    ['::ffff:198.51.100.9', '198.51.100.0'],
  ] as const)('shows, from %s, its network %s, and no more is stored', async ([address, network], { api }) => {
    const caller = await api.createCaller();
    const keys = async () =>
      jsonOf(await api.call(caller, 'GET', `/v1/orgs/${caller.orgId}/keys`, undefined, from(address)));
    await keys();
    await expect.poll(async () => (await keys())[0].last_used_from).toBe(network);
    const { rows } = await api.connection.pool.query(
      'SELECT to_jsonb(k)::text AS text FROM api_keys k WHERE org_id = $1',
      [caller.orgId],
    );
    expect(rows[0].text).not.toContain(address);
  });
});
