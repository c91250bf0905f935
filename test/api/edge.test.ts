import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../api/app.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { jsonOf } from '../support/partner.ts';

/** Thirty seconds into a window. */
const HALF_PAST = new Date('2026-11-21T08:00:30.000Z');

let api: TestApi;
let port: number;

beforeAll(async () => {
  api = await createTestApi({ config: { rateLimitPerMinute: 20 }, deps: { now: () => HALF_PAST } });
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  const address = api.app.server.address();
  port = typeof address === 'object' && address ? address.port : expect.fail('no port');
});
afterAll(() => api.close());

/** Sends bytes as they are, and reads until the server closes or enough has come. */
const raw = (bytes: string, until: (text: string) => boolean = () => false): Promise<{ text: string; ms: number }> =>
  new Promise((resolve, reject) => {
    const startedAt = performance.now();
    let text = '';
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const done = () => {
      resolve({ text, ms: performance.now() - startedAt });
      socket.destroy();
    };
    socket.on('data', (part) => {
      text += String(part);
      if (until(text)) done();
    });
    socket.on('close', done);
    socket.on('error', reject);
  });

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);

describe('what is no request', () => {
  test('400 for what is not HTTP, as a problem, and the connection is closed', async () => {
    const { text } = await raw('NONSENSE\r\n\r\n');
    expect(statusOf(text)).toBe(400);
    expect(text).toContain('application/problem+json');
    expect(text).not.toContain('NONSENSE');
  });

  test('400 for two lengths, and for a length beside chunks', async () => {
    for (const headers of [
      'Content-Length: 2\r\nContent-Length: 3',
      'Content-Length: 2\r\nTransfer-Encoding: chunked',
    ]) {
      expect(statusOf((await raw(`POST /v1/orgs HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n{}`)).text)).toBe(400);
    }
  });

  test('431 for headers that are too long', async () => {
    const { text } = await raw(
      `GET /health/live HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(LIMITS.headerBytes + 1)}\r\n\r\n`,
    );
    expect(statusOf(text)).toBe(431);
  });

  test('404 for an address that cannot be read, without echoing it', async () => {
    const answer = await api.call(null, 'GET', '/v1/recipients/%zz');
    expect(jsonOf(answer)).toMatchObject({ status: 404, code: 'not_found' });
    expect(answer.headers['x-request-id']).toBe(jsonOf(answer).request_id);
  });

  test('408 for headers that do not come in time, and other callers are answered meanwhile', async () => {
    const slow = raw('GET /health/live HTTP/1.1\r\nHost: x\r\n');
    await delay(50);
    expect((await api.call(null, 'GET', '/health/live')).statusCode).toBe(200);
    const { text, ms } = await slow;
    expect(statusOf(text)).toBe(408);
    expect(text).toContain('request_timeout');
    expect(ms).toBeLessThan(LIMITS.headersTimeoutMs + 3 * LIMITS.connectionsCheckingIntervalMs);
  });
});

describe('rate limits', () => {
  test('429 with Retry-After and the IETF headers once the quota is used, per key, before the body is read', async () => {
    const [one, other] = [await api.createCaller(), await api.createCaller()];
    const statuses = [];
    for (let n = 0; n < 20; n += 1) statuses.push((await api.call(one, 'POST', '/v1/recipients', '{')).statusCode);
    expect(new Set(statuses)).toEqual(new Set([422]));
    const refused = await api.call(one, 'POST', '/v1/recipients', '{');
    expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(refused.headers).toMatchObject({
      'retry-after': '30',
      ratelimit: '"default";r=0;t=30',
      'ratelimit-policy': '"default";q=20;w=60',
    });
    expect((await api.call(other, 'GET', '/v1/recipients')).statusCode).toBe(200);
  });

  test('signing up counts tenfold against the address, and a second address is not concerned', async () => {
    const signUp = (remoteAddress: string) =>
      api.app.inject({
        method: 'POST',
        url: '/v1/orgs',
        remoteAddress,
        payload: { name: 'Acme', country: 'JM', contact_email: 'dev@acme.example' },
      });
    const statuses = [
      await signUp('192.0.2.1'),
      await signUp('192.0.2.1'),
      await signUp('192.0.2.1'),
      await signUp('192.0.2.2'),
    ].map((answer) => answer.statusCode);
    expect(statuses).toEqual([201, 201, 429, 201]);
  });
});
