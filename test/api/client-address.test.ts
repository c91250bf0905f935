/**
 * Whom the limits count (contract §2, §16): the client behind trusted proxies, and never an invented one. The tests
 * attack as a stranger does: with headers, and with many addresses.
 */
import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { describe, expect } from 'vitest';
import { parseBlock } from '../../domain/network-address.ts';
import { createLogger } from '../../process/logger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { MINUTE_ENDS } from '../support/patience.ts';

const QUOTA = 30;
const blocks = (...texts: string[]) => texts.flatMap((text) => parseBlock(text) ?? []);

const logged: string[] = [];
const sink = new Writable({
  write: (chunk: Buffer, _encoding, done) => {
    logged.push(chunk.toString());
    done();
  },
});

const test = withApi({
  logger: createLogger({ level: 'warn', name: 'api' }, sink),
  config: {
    rateLimitPerMinute: QUOTA,
    trustedProxies: blocks('10.0.0.0/8', '2001:db8:ffff::/48', '::ffff:172.16.0.0/108'),
  },
})
  .extend('warnings', FILE, logged)
  .extend('visit', ({ api }) => async (remoteAddress: string, forwarded?: string | string[]) => {
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    const answer = await api.app.inject({ method: 'GET', url: '/v2/capabilities', remoteAddress, headers });
    return Number(/r=(\d+)/.exec(String(answer.headers['ratelimit']))?.[1]);
  });

/** Counts as two requests of one caller: the second has less left than the first. */
const sameCaller = async (first: Promise<number>, second: () => Promise<number>) => {
  const left = await first;
  expect(await second()).toBe(left - 1);
};

/** Also before a test is tried again: otherwise its addresses have used their budgets. */
test.beforeEach(async ({ api }) => void (await api.owner.pool.query('DELETE FROM rate_limits')));

describe('the client behind proxies', MINUTE_ENDS, () => {
  test('has the budget of its own address, not that of the proxy', async ({ visit }) => {
    expect(await visit('10.0.0.1', '198.51.100.1')).toBe(QUOTA - 1);
    expect(await visit('10.0.0.1', '198.51.100.2')).toBe(QUOTA - 1);
    await sameCaller(visit('10.0.0.2', '198.51.100.3'), () => visit('172.16.5.5', '198.51.100.3'));
  });

  test('cannot choose an address by writing the header itself', async ({ visit }) => {
    await sameCaller(visit('10.0.0.1', '1.2.3.4, 198.51.100.10'), () => visit('10.0.0.1', '5.6.7.8, 198.51.100.10'));
    // The second proxy has added the first one.
    await sameCaller(visit('10.0.0.1', '1.2.3.4, 198.51.100.11, 10.9.9.9'), () =>
      visit('10.0.0.1', '10.1.1.1,198.51.100.11 , 10.9.9.9'),
    );
    // Two lines are one list.
    await sameCaller(visit('10.0.0.1', ['9.9.9.9', '198.51.100.12']), () => visit('10.0.0.1', '198.51.100.12'));
  });

  test('is the peer when the peer is no trusted proxy, whatever the header says', async ({ visit, warnings }) => {
    await sameCaller(visit('203.0.113.1', '198.51.100.20'), () => visit('203.0.113.1', '10.0.0.1'));
    await sameCaller(visit('203.0.113.2'), () => visit('::ffff:203.0.113.2', '198.51.100.21'));
    expect(warnings.filter((line) => line.includes('TRUSTED_PROXIES does not name'))).toHaveLength(1);
  });

  test('is the last known proxy when an entry is no address, which is logged once', async ({ visit, warnings }) => {
    await sameCaller(visit('10.0.0.30', 'unknown'), () => visit('10.0.0.30', '198.51.100.30, 1.2.3.4:x'));
    await sameCaller(visit('10.0.0.31', ''), () => visit('10.0.0.31', '10.0.0.31'));
    expect(warnings.filter((line) => line.includes('is no address'))).toHaveLength(1);
  });

  test('is the address of an entry with a port', async ({ visit }) => {
    expect(await visit('10.0.0.32', '198.51.100.32:4711')).toBe(QUOTA - 1);
    expect(await visit('10.0.0.32', '198.51.100.33:4711')).toBe(QUOTA - 1);
    await sameCaller(visit('10.0.0.32', '198.51.100.34:1, 10.0.0.33:2'), () => visit('10.0.0.32', '198.51.100.34'));
    await sameCaller(visit('10.0.0.32', '[2001:db8:1:a::1]:4711'), () => visit('10.0.0.32', '[2001:db8:1:a::2]'));
  });

  test('is the /64 of an IPv6 address, and the IPv4 address of a mapped one', async ({ visit }) => {
    await sameCaller(visit('2001:db8:1:2::1'), () => visit('2001:db8:1:2:ffff:ffff:ffff:ffff'));
    await sameCaller(visit('2001:db8:ffff::1', '2001:DB8:1:9::1'), () => visit('10.0.0.1', '2001:db8:1:9:0:0:0:2'));
    await sameCaller(visit('10.0.0.1', '::ffff:198.51.100.40'), () => visit('10.0.0.1', '198.51.100.40'));
    expect(await visit('2001:db8:1:3::1')).toBe(QUOTA - 1);
  });

  test('has a budget for pages that sign-in does not share', async ({ api }) => {
    const remoteAddress = '203.0.113.50';
    for (let n = 0; n < QUOTA + 1; n += 1) await api.app.inject({ method: 'GET', url: '/', remoteAddress });
    expect((await api.app.inject({ method: 'GET', url: '/', remoteAddress })).statusCode).toBe(429);
    const payload = { challenge_id: randomUUID(), code: '000000' };
    const tried = await api.app.inject({ method: 'POST', url: '/consumer/auth/verify-otp', remoteAddress, payload });
    expect(tried.statusCode).toBe(401);
  });
});

test('the keys of one organization share one quota', MINUTE_ENDS, async ({ api }) => {
  const first = await api.createCaller('read');
  const second = await api.createKey(first.orgId, 'read');
  const statuses = [];
  for (let n = 0; n < QUOTA + 1; n += 1)
    statuses.push((await api.call(n % 2 === 0 ? first : second, 'GET', '/v2/payment-methods')).statusCode);
  expect(statuses).toContain(429);
  const third = await api.createKey(first.orgId, 'read');
  expect((await api.call(third, 'GET', '/v2/payment-methods')).statusCode).toBe(429);
});
