import { describe, expect } from 'vitest';
import { withApi } from '../support/fixture.ts';
import { jsonOf, signUpFrom } from '../support/partner.ts';

const test = withApi({ config: { rateLimitPerMinute: 20 } });

/** A minute may end between two requests of a test: then the counts begin again. */
const MINUTE_ENDS = { retry: 1 };

describe('rate limits', MINUTE_ENDS, () => {
  test('429 per organization with Retry-After and the IETF headers once the quota is used, before the body is read', async ({
    api,
  }) => {
    const [one, other] = [await api.createCaller(), await api.createCaller()];
    const statuses = [];
    for (let n = 0; n < 20; n += 1) statuses.push((await api.call(one, 'POST', '/v1/recipients', '{')).statusCode);
    expect(new Set(statuses)).toEqual(new Set([422]));
    const refused = await api.call(one, 'POST', '/v1/recipients', '{');
    expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(refused.headers).toMatchObject({
      ratelimit: `"default";r=0;t=${refused.headers['retry-after']}`,
      'ratelimit-policy': '"default";q=20;w=60',
    });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect((await api.call(other, 'GET', '/v1/recipients')).statusCode).toBe(200);
  });

  test('windows follow the database, so that an API with another clock does not begin them again', async ({
    api,
    clock,
  }) => {
    const partner = await api.createCaller('read');
    const left = async () => {
      const answer = await api.call(partner, 'GET', '/v2/payment-methods');
      return Number(/r=(\d+)/.exec(String(answer.headers['ratelimit']))?.[1]);
    };
    const first = await left();
    clock.advance(-90_000);
    expect(await left()).toBe(first - 1);
    clock.advance(180_000);
    expect(await left()).toBe(first - 2);
  });

  test('a window that began while the database’s clock was hours ahead ends once the clock is right again', async ({
    api,
  }) => {
    const partner = await api.createCaller('read');
    expect((await api.call(partner, 'GET', '/v2/payment-methods')).statusCode).toBe(200);
    const { rowCount } = await api.connection.pool.query(
      `UPDATE rate_limits SET window_start = window_start + interval '5 hours', used = 1000 WHERE caller = $1`,
      [`org:${partner.orgId}`],
    );
    expect(rowCount).toBe(1);
    const answer = await api.call(partner, 'GET', '/v2/payment-methods');
    expect([answer.statusCode, answer.headers['ratelimit']]).toEqual([
      200,
      expect.stringMatching(/^"default";r=19;t=\d{1,2}$/),
    ]);
  });

  test('429 for the third sign-up from one address, and not for another address', async ({ api }) => {
    const statuses = [];
    for (const host of [1, 1, 1, 2]) statuses.push((await signUpFrom(api, `192.0.2.${host}`)).statusCode);
    expect(statuses).toEqual([201, 201, 429, 201]);
  });

  test('429 for unknown addresses and methods of one address beyond a budget of their own', async ({ newApi }) => {
    const origin = 'https://app.example.com';
    const api = await newApi({ config: { rateLimitPerMinute: 20, consumerAllowedOrigins: [origin] } });
    const send = (method: 'GET' | 'PATCH' | 'OPTIONS', url: string, host = 5, headers = {}) =>
      api.app.inject({ method, url, remoteAddress: `192.0.2.${host}`, headers });
    const preflight = { origin, 'access-control-request-method': 'POST' };
    const statuses = [];
    for (let n = 0; n < 10; n += 1) {
      statuses.push((await send('GET', `/unknown-${n}`)).statusCode, (await send('PATCH', '/v2/settle')).statusCode);
      expect((await send('OPTIONS', '/consumer/transfers', 5, preflight)).statusCode).toBe(204);
    }
    expect(new Set(statuses)).toEqual(new Set([404, 405]));
    for (const refused of [await send('GET', '/unknown'), await send('PATCH', '/v2/settle')]) {
      expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
      expect(refused.headers['ratelimit-policy']).toBe('"page";q=20;w=60');
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    }
    expect((await send('OPTIONS', '/consumer/transfers', 5, preflight)).statusCode).toBe(204);
    expect((await send('GET', '/v2/capabilities')).statusCode).toBe(200);
    expect((await send('GET', '/unknown', 6)).statusCode).toBe(404);
  });
});
