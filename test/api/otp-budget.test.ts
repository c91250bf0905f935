/**
 * What guessing one-time codes costs (docs/decisions.md, "Consumers and wallets"): budgets by address, by contact and
 * of everyone together. The tests attack with few addresses, with one contact, and with many addresses.
 */
import { describe, expect } from 'vitest';
import { OTP_LIMITS } from '../../domain/otp.ts';
import { budgetsOf, REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { newEmail, otherThan } from '../support/consumer.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';

const QUOTA = 120;
const BUDGETS = budgetsOf(QUOTA);

const test = withApi({ config: { rateLimitPerMinute: QUOTA } })
  .extend('ask', ({ api }) => async (email: string, remoteAddress: string) => {
    const answer = await api.app.inject({
      method: 'POST',
      url: '/consumer/auth/request-otp',
      remoteAddress,
      payload: { email },
    });
    return { status: answer.statusCode, headers: answer.headers, ...jsonOf(answer) };
  })
  .extend('tryCode', ({ api }) => async (challengeId: string, code: string, remoteAddress: string) => {
    const payload = { challenge_id: challengeId, code };
    const url = '/consumer/auth/verify-otp';
    const answer = await api.app.inject({ method: 'POST', url, remoteAddress, payload });
    return { status: answer.statusCode, headers: answer.headers };
  })
  .extend('freshBudgets', { auto: true }, async ({ api }) => {
    await api.connection.pool.query('DELETE FROM rate_limits');
  });

/** Another address for each call, so that only the other budgets count. */
const addresses = () => {
  let n = 0;
  return () => {
    n += 1;
    return `10.${Math.floor(n / 256)}.${n % 256}.7`;
  };
};

describe('one-time codes of one address', () => {
  test('429 once its codes of the hour are used, to however many contacts', async ({ ask }) => {
    const allowed = Math.floor(BUDGETS['one-time-code'].quota / REQUEST_WEIGHTS.codeRequest);
    expect(allowed).toBeLessThan(QUOTA / 4);
    const statuses = [];
    for (let n = 0; n <= allowed; n += 1) statuses.push((await ask(newEmail(), '203.0.113.1')).status);
    expect(statuses).toEqual([...Array.from({ length: allowed }, () => 200), 429]);
    const refused = await ask(newEmail(), '203.0.113.1');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await ask(newEmail(), '203.0.113.2')).status).toBe(200);
  });
});

describe('one-time codes of one contact', () => {
  test('is locked down after its wrong codes of a day: one code an hour with one try, which still signs in', async ({
    api,
    ask,
    tryCode,
    clock,
  }) => {
    const email = newEmail();
    const next = addresses();
    let wrong = 0;
    while (wrong < OTP_LIMITS.wrongMax) {
      const challenge = await ask(email, next());
      if (challenge.status === 429) clock.advance(OTP_LIMITS.requestWindowMs + 1_000);
      else
        for (let attempt = 0; attempt < OTP_LIMITS.triesMax; attempt += 1) {
          expect((await tryCode(challenge.challenge_id, otherThan(challenge.sandbox_code), next())).status).toBe(401);
          wrong += 1;
        }
      // Only the contact is under test.
      await api.connection.pool.query(`DELETE FROM rate_limits WHERE caller = 'otp:wrong'`);
    }
    clock.advance(OTP_LIMITS.requestWindowMs + 1_000);
    const locked = await ask(email, next());
    expect(locked.status).toBe(200);
    expect((await tryCode(locked.challenge_id, otherThan(locked.sandbox_code), next())).status).toBe(401);
    expect((await tryCode(locked.challenge_id, locked.sandbox_code, next())).status).toBe(401);
    const second = await ask(email, next());
    expect(second.status).toBe(429);
    expect(Number(second.headers['retry-after'])).toBeGreaterThan(3_500);
    clock.advance(OTP_LIMITS.requestWindowMs + 1_000);
    const owner = await ask(email, next());
    expect((await tryCode(owner.challenge_id, owner.sandbox_code, next())).status).toBe(200);
    // Another contact is not affected.
    const other = await ask(newEmail(), next());
    expect((await tryCode(other.challenge_id, otherThan(other.sandbox_code), next())).status).toBe(401);
    expect((await tryCode(other.challenge_id, other.sandbox_code, next())).status).toBe(200);
  });
});

describe('one-time codes of all contacts together', () => {
  test('too many wrong codes leave new challenges one try', async ({ ask, tryCode }) => {
    const next = addresses();
    for (let wrong = 0; wrong < BUDGETS['wrong-codes'].quota; ) {
      const challenge = await ask(newEmail(), next());
      for (let attempt = 0; attempt < OTP_LIMITS.triesMax; attempt += 1, wrong += 1)
        expect((await tryCode(challenge.challenge_id, otherThan(challenge.sandbox_code), next())).status).toBe(401);
    }
    const strict = await ask(newEmail(), next());
    expect((await tryCode(strict.challenge_id, otherThan(strict.sandbox_code), next())).status).toBe(401);
    expect((await tryCode(strict.challenge_id, strict.sandbox_code, next())).status).toBe(401);
    const honest = await ask(newEmail(), next());
    expect((await tryCode(honest.challenge_id, honest.sandbox_code, next())).status).toBe(200);
  });

  test('right codes do not count', async ({ api, ask, tryCode }) => {
    const next = addresses();
    for (let n = 0; n < 3; n += 1) {
      const challenge = await ask(newEmail(), next());
      expect((await tryCode(challenge.challenge_id, challenge.sandbox_code, next())).status).toBe(200);
    }
    const { rows } = await api.connection.pool.query(`SELECT used FROM rate_limits WHERE caller LIKE 'otp:wrong%'`);
    expect(new Set(rows.map(({ used }) => used))).toEqual(new Set([0]));
  });
});
