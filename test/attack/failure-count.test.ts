/**
 * Whose failures count against whom (contract §2, §12). An address that fails too often is refused before the database
 * is asked, and a valid caller is never refused for what others did wrong.
 */
import { describe, expect, vi } from 'vitest';
import { createAddressCount } from '../../api/http/address-count.ts';
import { createRecentCredentials } from '../../api/http/recent-credential.ts';
import { generateSessionToken } from '../../api/http/session-token.ts';
import { budgetsOf } from '../../domain/rate-limit.ts';
import { generateApiKey } from '../../process/api-key.ts';
import type { TestApi } from '../support/api.ts';
import { newEmail, otherThan, signIn } from '../support/consumer.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { MINUTE_ENDS } from '../support/patience.ts';
import { recordStatements } from '../support/statement-count.ts';
import { SIGNATURES } from './world.ts';

const QUOTA = 60;
const FAILURES = budgetsOf(QUOTA).failure.quota;

type Sent = {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly payload: object | string;
};
const inject = (api: TestApi, remoteAddress: string, request: Partial<Sent>) =>
  api.app.inject({ method: 'GET', url: '/v1/recipients', remoteAddress, ...request });

const test = withApi({ config: { rateLimitPerMinute: QUOTA } }).extend(
  'send',
  ({ api }) =>
    async (remoteAddress: string, request: Partial<Sent>) =>
      (await inject(api, remoteAddress, request)).statusCode,
);

const times = async (count: number, send: () => Promise<number>): Promise<Set<number>> => {
  const statuses = new Set<number>();
  for (let n = 0; n < count; n += 1) statuses.add(await send());
  return statuses;
};
const unknownKey = () => ({ headers: { 'x-api-key': generateApiKey('local-sandbox') } });
const unknownSession = () => ({ url: '/consumer/me', headers: { authorization: `Bearer ${generateSessionToken()}` } });

/** Failures are counted by this process's clock. It stands still, so that their minute does not end. */
test.beforeEach(async ({ api }) => {
  await api.owner.pool.query('DELETE FROM rate_limits');
  vi.useFakeTimers({ toFake: ['performance'] });
});
test.afterEach(() => void vi.useRealTimers());

describe('a valid credential', () => {
  test.for([
    ['unknown keys', unknownKey, '203.0.113.1'],
    ['no key', () => ({}), '203.0.113.2'],
    ['unknown sessions', unknownSession, '203.0.113.3'],
  ] as const)(
    'is accepted beside a caller of the same address with %s, who is refused without asking the database',
    async ([_case, bad, address], { api, send }) => {
      const good = { headers: { 'x-api-key': (await api.createCaller('read')).apiKey } };
      expect(await send(address, good)).toBe(200);
      expect(await times(FAILURES, () => send(address, bad()))).toEqual(new Set([401]));
      const asked = recordStatements(api.connection.pool);
      const refused = await inject(api, address, bad());
      expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(asked()).toEqual([]);
      expect(await send(address, good)).toBe(200);
      // A thief of a key at this address does not profit from what its owner did at another one.
      const stolen = { headers: { 'x-api-key': (await api.createCaller('read')).apiKey } };
      expect([await send('198.51.100.1', stolen), await send(address, stolen)]).toEqual([200, 429]);
    },
  );

  test('is accepted as a session too', async ({ api, send }) => {
    const address = '203.0.113.4';
    const { token } = await signIn(api);
    const good = { url: '/consumer/me', headers: { authorization: `Bearer ${token}` } };
    expect(await send(address, good)).toBe(200);
    await times(FAILURES, () => send(address, unknownKey()));
    expect([await send(address, unknownSession()), await send(address, good)]).toEqual([429, 200]);
  });

  test('is not refused for 403s of its own organization', async ({ api, send }) => {
    const reader = await api.createCaller('read');
    const writer = await api.createKey(reader.orgId, 'full');
    const attempt = () =>
      send('203.0.113.5', { method: 'POST', url: '/v1/wallets', headers: { 'x-api-key': reader.apiKey } });
    expect(await times(3 * FAILURES, attempt)).toEqual(new Set([403]));
    expect(await send('203.0.113.5', { headers: { 'x-api-key': writer.apiKey } })).toBe(200);
  });

  test('is asked of the database once it was revoked', async ({ api, send }) => {
    const key = await api.createCaller('read');
    const good = { headers: { 'x-api-key': key.apiKey } };
    expect(await send('203.0.113.6', good)).toBe(200);
    await api.connection.pool.query(`UPDATE api_keys SET status = 'revoked' WHERE key_id = $1`, [key.keyId]);
    await times(FAILURES - 1, () => send('203.0.113.6', unknownKey()));
    expect([await send('203.0.113.6', good), await send('203.0.113.6', good)]).toEqual([401, 429]);
  });
});

test('beyond a hundred refusals of bad keys, each further one is held back', async ({ send }) => {
  const bad = () => send('203.0.113.8', unknownKey());
  expect(await times(FAILURES, bad)).toEqual(new Set([401]));
  expect(await times(100, bad)).toEqual(new Set([429]));
  const begunMs = Date.now();
  expect(await bad()).toBe(429);
  expect(Date.now() - begunMs).toBeGreaterThanOrEqual(450);
});

test('a session header that is too long counts as a failure', async ({ send }) => {
  const tooLong = () => send('203.0.113.7', { url: '/consumer/me', headers: { authorization: 'x'.repeat(257) } });
  expect(await times(FAILURES, tooLong)).toEqual(new Set([422]));
  expect(await tooLong()).toBe(429);
});

describe('a clock that is set anew', () => {
  const HOUR_MS = 3_600_000;
  const at = Date.now();
  test.for([
    ['back', at - HOUR_MS],
    ['forward', at + HOUR_MS],
  ] as const)('%s changes no window, and no valid credential is forgotten', ([_case, changed]) => {
    vi.useFakeTimers({ now: at, toFake: ['Date', 'performance'] });
    const failures = createAddressCount({ windowSeconds: 60 });
    const recent = createRecentCredentials();
    failures.add('203.0.113.30');
    recent.add('credential');
    vi.setSystemTime(changed);
    expect(failures.of('203.0.113.30')).toEqual({ used: 1, resetSeconds: 60 });
    expect(recent.has('credential')).toBe(true);
    vi.advanceTimersByTime(60_000);
    expect(failures.of('203.0.113.30')).toBeUndefined();
    vi.advanceTimersByTime(14 * 60_000);
    expect(recent.has('credential')).toBe(false);
  });
});

test('beyond fifty thousand, the first failure and the credential that was valid longest ago are forgotten', () => {
  const failures = createAddressCount({ windowSeconds: 60 });
  const recent = createRecentCredentials();
  for (const name of ['first', 'second']) {
    failures.add(name);
    recent.add(name);
  }
  recent.add('first');
  for (let n = 0; n < 50_000 - 1; n += 1) {
    failures.add(`${n}`);
    recent.add(`${n}`);
  }
  expect([failures.of('first'), failures.of('second')?.used]).toEqual([undefined, 1]);
  expect([recent.has('first'), recent.has('second')]).toEqual([true, false]);
});

describe('a bad signature of a provider', () => {
  test.for([
    ['cardproc', '203.0.113.20', '203.0.113.21'],
    ['bankledger', '203.0.113.22', '203.0.113.23'],
    ['idverify', '203.0.113.24', '203.0.113.25'],
  ] as const)('counts for %s, by its address alone', async ([name, bad, good], { api, send }) => {
    const url = `/v2/webhooks/${name}`;
    const payload = '{"id":"evt_1","type":"unknown","event":"unknown","correlationId":"evt_1"}';
    const signed = SIGNATURES[`POST ${url}`]?.(Buffer.from(payload)) ?? {};
    const post = (address: string, body: string) =>
      send(address, {
        method: 'POST',
        url,
        payload: body,
        headers: { 'content-type': 'application/json', ...signed },
      });
    expect(await times(FAILURES, () => post(bad, '{}'))).toEqual(new Set([401]));
    expect(await post(bad, '{}')).toBe(429);
    expect(await post(good, payload)).not.toBe(429);
    // Keys and providers count for themselves.
    expect(await send(bad, { headers: { 'x-api-key': (await api.createCaller('read')).apiKey } })).toBe(200);
    await times(FAILURES + 1, () => send(good, unknownKey()));
    expect(await post(good, payload)).not.toBe(429);
  });
});

test("bad signatures of one provider refuse no other provider's event from the same address", async ({ send }) => {
  const payload = '{"id":"evt_2","type":"unknown","event":"unknown","correlationId":"evt_2"}';
  const post = (name: string, body: string) => {
    const url = `/v2/webhooks/${name}`;
    return send('203.0.113.26', {
      method: 'POST',
      url,
      payload: body,
      headers: { 'content-type': 'application/json', ...SIGNATURES[`POST ${url}`]?.(Buffer.from(payload)) },
    });
  };
  expect(await times(FAILURES, () => post('idverify', '{}'))).toEqual(new Set([401]));
  const statuses = [
    await post('cardproc', payload),
    await post('bankledger', payload),
    await post('idverify', payload),
  ];
  expect(statuses).toEqual([200, 200, 429]);
});

describe('a right one-time code', MINUTE_ENDS, () => {
  const post = (api: TestApi, remoteAddress: string, url: string, payload: object) =>
    inject(api, remoteAddress, { method: 'POST', url, payload });
  const ask = async (api: TestApi, address: string) =>
    jsonOf(await post(api, address, '/consumer/auth/request-otp', { email: newEmail() }));
  const verify = async (api: TestApi, address: string, { challenge_id }: Json, code: string) =>
    (await post(api, address, '/consumer/auth/verify-otp', { challenge_id, code })).statusCode;

  test('signs in beside any number of wrong codes from its own address', async ({ api }) => {
    const own = '203.0.113.9';
    const given = await ask(api, own);
    const statuses = new Set<number>();
    for (let n = 0; n <= QUOTA; n += 1) {
      const other = await ask(api, `10.${n}.7.7`);
      statuses.add(await verify(api, own, other, otherThan(other['sandbox_code'])));
    }
    expect(statuses).toEqual(new Set([401]));
    expect(await verify(api, own, given, given['sandbox_code'])).toBe(200);
    const next = await ask(api, own);
    for (let n = 0; n < 4; n += 1) await verify(api, own, next, otherThan(next['sandbox_code']));
    expect(await verify(api, own, next, next['sandbox_code'])).toBe(200);
  });

  test('signs in when its address has used up what it may request, and a wrong one before it is 401', async ({
    api,
  }) => {
    const address = '203.0.113.10';
    const given = await ask(api, address);
    const read = async () => (await inject(api, address, { url: '/v2/capabilities' })).statusCode;
    expect(await times(QUOTA, read)).toEqual(new Set([200]));
    expect(await read()).toBe(429);
    const code = otherThan(given['sandbox_code']);
    // A client repeats what is 429. Each repetition would use a try.
    const wrong = () => post(api, address, '/consumer/auth/verify-otp', { challenge_id: given.challenge_id, code });
    const refused = await wrong();
    expect([refused.statusCode, jsonOf(refused)['code']]).toEqual([401, 'credential_invalid']);
    expect(refused.headers['ratelimit']).toMatch(/^"default";r=0;t=/);
    for (const _ of [2, 3, 4]) await wrong();
    expect(await verify(api, address, given, given['sandbox_code'])).toBe(200);
  });
});
