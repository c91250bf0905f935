/**
 * What guessing one-time codes costs (docs/decisions.md, "Consumers and wallets"). What limits it is how many codes are
 * given out that nobody proves. Every code has its five tries, whatever others did.
 */
import { describe, expect } from 'vitest';
import { OTP_LIMITS } from '../../domain/otp.ts';
import { budgetsOf, REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { newEmail, otherThan } from '../support/consumer.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { MINUTE_ENDS } from '../support/patience.ts';

const PER_MINUTE = 1_200;
const BUDGET = budgetsOf(PER_MINUTE)['one-time-code'];
/** Codes that an address is given in an hour while nobody proves one. */
const UNPROVED_MAX = 20;

const test = withApi({ config: { rateLimitPerMinute: PER_MINUTE } })
  .extend('post', ({ api }) => async (url: string, remoteAddress: string, payload: object) => {
    const answer = await api.app.inject({ method: 'POST', url, remoteAddress, payload });
    return { status: answer.statusCode, headers: answer.headers, ...jsonOf(answer) };
  })
  .extend(
    'ask',
    ({ post }) =>
      (remoteAddress: string, email = newEmail()) =>
        post('/consumer/auth/request-otp', remoteAddress, { email }),
  )
  .extend(
    'verify',
    ({ post }) =>
      async (remoteAddress: string, { challenge_id }: Json, code: string) =>
        (await post('/consumer/auth/verify-otp', remoteAddress, { challenge_id, code })).status,
  )
  .extend('freshBudgets', { auto: true }, async ({ api }) => {
    await api.connection.pool.query('DELETE FROM rate_limits');
  });

/** Another address for each call, so that none reaches a limit. */
const addresses = () => {
  let n = 0;
  return () => {
    n += 1;
    return `10.${Math.floor(n / 256)}.${n % 256}.7`;
  };
};

/** One after the other. */
const many = async <T>(count: number, run: () => Promise<T>): Promise<T[]> => {
  const results: T[] = [];
  while (results.length < count) results.push(await run());
  return results;
};

describe('one-time codes of one address', MINUTE_ENDS, () => {
  const own = '203.0.113.1';

  test('429 once it was given twenty codes in an hour that nobody proved, to however many contacts', async ({
    ask,
  }) => {
    expect(Math.floor(BUDGET.quota / REQUEST_WEIGHTS.unprovedCode)).toBe(UNPROVED_MAX);
    const given = await many(UNPROVED_MAX, () => ask(own));
    expect(new Set(given.map(({ status }) => status))).toEqual(new Set([200]));
    const refused = await ask(own);
    expect([refused.status, refused['code']]).toEqual([429, 'rate_limited']);
    expect(refused.headers['ratelimit-policy']).toBe(`"one-time-code";q=${BUDGET.quota};w=3600`);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await ask('203.0.113.2')).status).toBe(200);
  });

  test('one at least, however few requests a minute are configured', () => {
    expect(budgetsOf(1)['one-time-code'].quota).toBeGreaterThanOrEqual(REQUEST_WEIGHTS.unprovedCode);
  });

  test('are given without end while each is proved', async ({ ask, verify }) => {
    for (let n = 0; n <= UNPROVED_MAX; n += 1) {
      const given = await ask(own);
      expect(await verify(own, given, given['sandbox_code'])).toBe(200);
    }
  });

  test('a proof makes room for one more, also when the right code is sent twice at once', async ({ ask, verify }) => {
    const [first = expect.fail('no code')] = await many(UNPROVED_MAX, () => ask(own));
    const prove = () => verify(own, first, first['sandbox_code']);
    expect((await ask(own)).status).toBe(429);
    expect((await Promise.all([prove(), prove()])).toSorted()).toEqual([200, 401]);
    expect(await prove()).toBe(401);
    expect([(await ask(own)).status, (await ask(own)).status]).toEqual([200, 429]);
  });

  test('a proof is no credit: it gives back what was charged, and no more', async ({ ask, verify }) => {
    const elsewhere = await ask('203.0.113.3');
    expect(await verify(own, elsewhere, elsewhere['sandbox_code'])).toBe(200);
    const statuses = (await many(UNPROVED_MAX + 1, () => ask(own))).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(UNPROVED_MAX);
  });

  test('a proof gives nothing back of an hour that did not charge for it', async ({ api, ask, verify }) => {
    const earlier = await ask(own);
    const { pool } = api.owner;
    await pool.query(`UPDATE otp_challenges SET created_at = created_at - interval '1 hour' WHERE challenge_id = $1`, [
      earlier['challenge_id'],
    ]);
    await pool.query('DELETE FROM rate_limits');
    await many(UNPROVED_MAX, () => ask(own));
    expect(await verify(own, earlier, earlier['sandbox_code'])).toBe(200);
    expect((await ask(own)).status).toBe(429);
  });

  test('a request that gives no code costs none: an invalid one, and one of a contact at its limit', async ({
    ask,
    post,
  }) => {
    const email = newEmail();
    await many(OTP_LIMITS.requestsMax, () => ask(own, email));
    const refused = await many(UNPROVED_MAX, async () => [
      (await post('/consumer/auth/request-otp', own, {})).status,
      (await ask(own, email)).status,
    ]);
    expect(new Set(refused.flat())).toEqual(new Set([422, 429]));
    const given = await many(UNPROVED_MAX - OTP_LIMITS.requestsMax, () => ask(own));
    expect(new Set(given.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

test('a request to verify without a code counts as one with a wrong code', async ({ post }) => {
  const left = async (payload: object) => {
    const { status, headers } = await post('/consumer/auth/verify-otp', '203.0.113.4', payload);
    return [status, /^"default";r=(\d+);/.exec(String(headers['ratelimit']))?.[1]];
  };
  const wrong = { challenge_id: crypto.randomUUID(), code: '123456' };
  expect([await left(wrong), await left({}), await left(wrong)]).toEqual([
    [401, '1199'],
    [422, '1198'],
    [401, '1197'],
  ]);
});

describe('every one-time code has five tries', () => {
  test('after a hundred wrong codes of others', async ({ ask, verify }) => {
    const next = addresses();
    for (let n = 0; n < UNPROVED_MAX; n += 1) {
      const given = await ask(next());
      await many(OTP_LIMITS.triesMax, () => verify(next(), given, otherThan(given['sandbox_code'])));
    }
    const own = await ask(next());
    const wrong = await many(4, () => verify(next(), own, otherThan(own['sandbox_code'])));
    expect([...wrong, await verify(next(), own, own['sandbox_code'])]).toEqual([401, 401, 401, 401, 200]);
  });

  test('after an hour in which all codes of its contact were tried in vain', async ({ ask, verify, clock }) => {
    const [email, next] = [newEmail(), addresses()];
    for (let n = 0; n < OTP_LIMITS.requestsMax; n += 1) {
      const given = await ask(next(), email);
      await many(OTP_LIMITS.triesMax, () => verify(next(), given, otherThan(given['sandbox_code'])));
    }
    clock.advance(OTP_LIMITS.requestWindowMs + 1_000);
    for (let n = 0; n < OTP_LIMITS.requestsMax; n += 1) {
      const given = await ask(next(), email);
      await many(4, () => verify(next(), given, otherThan(given['sandbox_code'])));
      expect(await verify(next(), given, given['sandbox_code'])).toBe(200);
    }
  });
});
