/** How consumers sign in and out (contract §12): codes, their limits, and sessions. */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { consumerSessions, consumers, organizations, otpChallenges, outbox } from '../../db/schema/index.ts';
import { hashConsumerContact } from '../../process/contact-hash.ts';
import { nameOf, OPERATIONS, type OperationRow } from '../contract/operations.ts';
import type { TestApi } from '../support/api.ts';
import { callAs, challenge, newEmail, otherThan, requestOtp, signIn, verifyOtp } from '../support/consumer.ts';
import { cancelBlocked, digestTables, dumpTables, raceBehind, whileLocked } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { type RawAnswer, sendRaw } from '../support/raw-request.ts';
import { expectInvalid, expectRefused, expectUnchanged } from '../support/refusal.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
/** The pool of the tests has a connection for each. */
const RACERS = 8;
const NOBODY = '0193a5c0-0000-7000-8000-000000000000';

const test = withApi()
  .extend('tokens', FILE, ({ api }) => createTokens(api))
  .extend('send', FILE, ({ port }) => {
    const origin = new URL(`http://127.0.0.1:${port}`);
    /** Calls with exactly these header lines and a body that no schema accepts. */
    return (row: OperationRow, lines: readonly string[], query = '') => {
      const path = row.path.replace(/\{[a-z_]+\}/g, () => NOBODY) + query;
      const body = row.method === 'GET' ? undefined : '{"amount": 1,';
      // A kept connection may be closed by the server between two tests, so each request has its own.
      return sendRaw(origin, { method: row.method, path, lines, body }, false);
    };
  });

const challengeRow = async (api: TestApi, id: string) =>
  (await api.connection.db.select().from(otpChallenges).where(eq(otpChallenges.challengeId, id)))[0];
const sessionsOf = (api: TestApi, consumerId: string) =>
  api.connection.db.$count(consumerSessions, eq(consumerSessions.consumerId, consumerId));

describe('POST /consumer/auth/request-otp', () => {
  test.for([
    ['no contact', {}],
    ['two contacts', { email: 'ana@example.com', phone: '+18765550123' }],
  ] as const)('422 for %s, and nothing is written', async ([_case, body], { api }) => {
    await expectInvalid(api, () => api.call(null, 'POST', '/consumer/auth/request-otp', body), [
      ['body', 'value_error'],
    ]);
  });

  test('429 with Retry-After for the sixth code of one contact within an hour, in any spelling', async ({
    api,
    clock,
  }) => {
    const email = newEmail();
    for (let request = 0; request < 5; request += 1) expect((await requestOtp(api, { email })).statusCode).toBe(200);
    const refused = await expectUnchanged(api.connection.pool, () => requestOtp(api, { email: email.toUpperCase() }));
    expect(jsonOf(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(refused.body).not.toContain(email);
    const seconds = Number(refused.headers['retry-after']);
    expect(seconds).toBeGreaterThan(3_500);
    expect(seconds).toBeLessThanOrEqual(3_600);
    expect(refused.headers).toMatchObject({
      'ratelimit-policy': '"otp";q=5;w=3600',
      ratelimit: `"otp";r=0;t=${seconds}`,
    });
    clock.advance(seconds * 1_000);
    expect((await requestOtp(api, { email })).statusCode).toBe(200);
  });

  test(`${RACERS} requests at once for one contact: 200 five times, then 429`, async ({ api }) => {
    const email = newEmail();
    const answers = await raceBehind(
      api.connection.pool,
      { hold: (holder) => holder.query('LOCK TABLE otp_challenges IN ACCESS EXCLUSIVE MODE') },
      Array.from({ length: RACERS }, () => () => requestOtp(api, { email })),
    );
    const statuses = answers.map(({ statusCode }) => statusCode);
    expect([200, 429].map((status) => statuses.filter((given) => given === status).length)).toEqual([5, RACERS - 5]);
  });

  test('200 with the same headers, fields and rows for a known and an unknown contact', async ({ api }) => {
    const known = newEmail();
    await signIn(api, { email: known });
    const counted = async (body: Record<string, unknown>) => {
      const { db } = api.connection;
      const [before, tenants] = [await db.$count(otpChallenges), await db.$count(organizations)];
      const answer = await requestOtp(api, body);
      expect(await db.$count(organizations)).toBe(tenants);
      return {
        status: answer.statusCode,
        headers: new Set(Object.keys(answer.headers)),
        fields: Object.keys(jsonOf(answer)),
        length: answer.body.length,
        rows: (await db.$count(otpChallenges)) - before,
      };
    };
    expect(await counted({ email: known })).toEqual(await counted({ email: newEmail() }));
  });

  test('200 with a challenge of five minutes, and with the code in the local sandbox', async ({ api }) => {
    const before = Date.now();
    const answer = await requestOtp(api, { phone: '+18765550123' });
    expect(answer.statusCode).toBe(200);
    const { expires_at: expiresAt, ...shown } = jsonOf(answer);
    expect(shown).toEqual({
      challenge_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      sandbox_code: expect.stringMatching(/^[0-9]{6}$/),
    });
    expect(expiresAt).toMatch(MOMENT);
    expect(new Date(expiresAt).getTime()).toBeGreaterThanOrEqual(before + 5 * MINUTE_MS);
    expect(new Date(expiresAt).getTime()).toBeLessThanOrEqual(Date.now() + 5 * MINUTE_MS);
  });

  test('code and contact are not readable in the database', async ({ api }) => {
    const email = newEmail();
    const { id, code } = await challenge(api, { email });
    const row = (await challengeRow(api, id)) ?? expect.fail('no challenge');
    expect(row.codeSealed).toBeNull();
    expect(row.codeHash.toString('latin1')).not.toContain(code);
    expect(await dumpTables(api.connection.pool)).not.toContain(email);
  });
});

describe('sending one-time codes', () => {
  test.for(['remote-sandbox', 'production'] as const)(
    '503 provider_not_configured in %s for a channel without a sender, and nothing is written',
    async (runtime, { newApi }) => {
      const without = await newApi({ runtime });
      const mailing = await newApi({ runtime, config: { smtpUrl: 'smtp://127.0.0.1:1' } });
      for (const [remote, body] of [
        [without, { email: newEmail() }],
        [without, { phone: '+18765550123' }],
        [mailing, { phone: '+18765550123' }],
      ] as const)
        await expectRefused(remote, () => requestOtp(remote, body), 503, { code: 'provider_not_configured' });
    },
  );

  test('200 without the code in production with a sender, and an outbox row without the code', async ({ newApi }) => {
    const remote = await newApi({ runtime: 'production', config: { smtpUrl: 'smtp://127.0.0.1:1' } });
    const email = newEmail();
    const answer = await requestOtp(remote, { email });
    expect([answer.statusCode, Object.keys(jsonOf(answer))]).toEqual([200, ['challenge_id', 'expires_at']]);
    expect(await remote.connection.db.select().from(outbox)).toEqual([
      expect.objectContaining({ kind: 'otp', objectId: jsonOf(answer).challenge_id, context: {}, signal: null }),
    ]);
    expect(remote.nudges()).toBe(1);
    expect(await dumpTables(remote.connection.pool)).not.toContain(email);
  });
});

describe('POST /consumer/auth/verify-otp', () => {
  test('401 with the same body for every invalid code: unknown, wrong, expired, used, tried too often', async ({
    api,
    clock,
  }) => {
    const fresh = await challenge(api);
    const wrong = await verifyOtp(api, fresh.id, otherThan(fresh.code));
    const [one, other] = [await challenge(api), await challenge(api)];
    const swapped = await verifyOtp(api, one.id, one.code === other.code ? otherThan(one.code) : other.code);
    const unknown = await verifyOtp(api, crypto.randomUUID(), '123456');
    const used = await challenge(api);
    await verifyOtp(api, used.id, used.code);
    const again = await verifyOtp(api, used.id, used.code);
    const tried = await challenge(api);
    for (let guess = 0; guess < 5; guess += 1) await verifyOtp(api, tried.id, otherThan(tried.code));
    const locked = await verifyOtp(api, tried.id, tried.code);
    const late = await challenge(api);
    clock.advance(5 * MINUTE_MS);
    const expired = await verifyOtp(api, late.id, late.code);
    const answers = [wrong, swapped, unknown, again, locked, expired];
    for (const answer of answers) {
      expect(jsonOf(answer)).toMatchObject({ status: 401, code: 'credential_invalid' });
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="settlement"');
    }
    expect(new Set(answers.map((answer) => answer.body.replace(jsonOf(answer).request_id, ''))).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => Object.keys(headers).join())).size).toBe(1);
  });

  test('401 for the right code after 200 wrong ones at once, of which five are checked', async ({ api }) => {
    const { id, code } = await challenge(api);
    const guesses = await Promise.all(Array.from({ length: 200 }, () => verifyOtp(api, id, otherThan(code))));
    expect(new Set(guesses.map(({ statusCode }) => statusCode))).toEqual(new Set([401]));
    expect((await challengeRow(api, id))?.attempts).toBe(5);
    expect((await verifyOtp(api, id, code)).statusCode).toBe(401);
  });

  test('a code of the local sandbox proves nothing in production on the same database, and counts for nothing there', async ({
    newApi,
  }) => {
    const database = await createTestDatabase();
    const local = await newApi({ database });
    const production = await newApi({
      runtime: 'production',
      config: { smtpUrl: 'smtp://127.0.0.1:1' },
      database: { ...database, drop: async () => undefined },
    });
    const email = newEmail();
    for (let request = 0; request < 4; request += 1) await challenge(local, { email });
    const { id, code } = await challenge(local, { email });
    expect((await verifyOtp(production, id, code)).statusCode).toBe(401);
    expect((await requestOtp(production, { email })).statusCode).toBe(200);
    expect((await verifyOtp(local, id, code)).statusCode).toBe(200);
  });

  test('the right code can be repeated after a failure, also at the fifth try', async ({ api }) => {
    const { id, code } = await challenge(api);
    for (let guess = 0; guess < 4; guess += 1) await verifyOtp(api, id, otherThan(code));
    const lock = 'LOCK TABLE consumers IN ACCESS EXCLUSIVE MODE';
    const failed = await whileLocked(api.owner.pool, lock, async () => {
      const asked = verifyOtp(api, id, code);
      await cancelBlocked(api.owner.pool);
      return await asked;
    });
    expect(jsonOf(failed)).toMatchObject({ status: 503, code: 'temporarily_unavailable' });
    expect((await verifyOtp(api, id, code)).statusCode).toBe(200);
  });

  test('the database refuses to take back tries and uses', async ({ api }) => {
    const { id, code } = await challenge(api);
    await verifyOtp(api, id, code);
    for (const change of ['attempts = 0', 'consumed_at = NULL']) {
      const update = api.connection.pool.query(`UPDATE otp_challenges SET ${change} WHERE challenge_id = $1`, [id]);
      await expect(update).rejects.toThrow('not taken back');
    }
  });

  test(`200 once for the right code ${RACERS} times at once`, async ({ api }) => {
    const { id, code } = await challenge(api);
    const answers = await raceBehind(
      api.connection.pool,
      { hold: (holder) => holder.query('SELECT 1 FROM otp_challenges WHERE challenge_id = $1 FOR UPDATE', [id]) },
      Array.from({ length: RACERS }, () => () => verifyOtp(api, id, code)),
    );
    const [opened, ...more] = answers.filter(({ statusCode }) => statusCode === 200);
    expect(more).toEqual([]);
    expect(await sessionsOf(api, jsonOf(opened ?? expect.fail('no session')).consumer_id)).toBe(1);
  });

  test('200 twice for two codes of a new contact at once: two sessions of one consumer', async ({ api }) => {
    const email = newEmail();
    const [one, other] = [await challenge(api, { email }), await challenge(api, { email: email.toUpperCase() })];
    const answers = await raceBehind(
      api.owner.pool,
      { hold: (holder) => holder.query('LOCK TABLE consumers IN ACCESS EXCLUSIVE MODE') },
      [() => verifyOtp(api, one.id, one.code), () => verifyOtp(api, other.id, other.code)],
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    expect(new Set(answers.map((answer) => jsonOf(answer).consumer_id)).size).toBe(1);
    expect(new Set(answers.map((answer) => jsonOf(answer).access_token)).size).toBe(2);
    const [pepper] = api.deps.config.apiKeyPeppers;
    const { hash } = hashConsumerContact(pepper, { channel: 'email', address: email.toLowerCase() });
    expect(await api.connection.db.select().from(consumers).where(eq(consumers.contactHash, hash))).toHaveLength(1);
  });

  test('200 at the fifth try, with a session of twelve hours', async ({ api }) => {
    const { id, code } = await challenge(api);
    for (let guess = 0; guess < 4; guess += 1) await verifyOtp(api, id, otherThan(code));
    const before = Date.now();
    const answer = await verifyOtp(api, id, code);
    expect(answer.statusCode).toBe(200);
    const opened = jsonOf(answer);
    expect(opened).toEqual({
      access_token: expect.stringMatching(/^cst_[A-Za-z0-9_-]{43}$/),
      token_type: 'Bearer',
      expires_at: expect.stringMatching(MOMENT),
      consumer_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(new Date(opened.expires_at).getTime() - before).toBeGreaterThanOrEqual(12 * HOUR_MS);
    expect(await dumpTables(api.connection.pool)).not.toContain(opened.access_token.slice(4));
  });

  test('200 with the same consumer for the same contact, a tenant without personal data', async ({ api }) => {
    const email = newEmail();
    const [first, second] = [await signIn(api, { email }), await signIn(api, { email })];
    expect(second.consumerId).toBe(first.consumerId);
    const [tenant] = await api.connection.db
      .select()
      .from(organizations)
      .where(eq(organizations.orgId, first.consumerId));
    expect(tenant).toMatchObject({ kind: 'consumer', name: 'Consumer', contactEmail: '' });
  });
});

const sessionOperations = OPERATIONS.filter(({ auth }) => auth === 'session').map((row) => [nameOf(row), row] as const);

describe('a request without a valid session', () => {
  let before: Record<string, string>;
  test.beforeAll(async ({ api, tokens: _tokens }) => {
    before = await digestTables(api.connection.pool);
  });

  describe.each(sessionOperations)('%s', (_name, row) => {
    test('401 credential_missing for a credential in any other place', async ({ send, tokens }) => {
      const { apiKey, valid } = tokens;
      for (const lines of [[], ['Authorization', ''], ['X-API-Key', apiKey], ['Cookie', `authorization=${valid}`]])
        expect(refusal(await send(row, lines))).toEqual(unauthorized('credential_missing'));
      const inQuery = await send(row, [], `?authorization=Bearer%20${valid}`);
      expect(refusal(inQuery)).toEqual(unauthorized('credential_missing'));
    });

    test('401 with the same body for every invalid header', async ({ send, tokens }) => {
      const { valid, invalid } = tokens;
      const bodies = new Set<string>();
      for (const lines of [
        ...invalid.map((value) => ['Authorization', value]),
        ['Authorization', `Bearer ${valid}`, 'Authorization', `Bearer ${valid}`],
        ['Authorization', `Bearer ${valid}, Bearer ${valid}`],
      ]) {
        const answer = await send(row, lines);
        expect([lines, refusal(answer)]).toEqual([lines, unauthorized('credential_invalid')]);
        const { request_id: _requestId, ...same } = answer.body;
        bodies.add(JSON.stringify(same));
      }
      expect(bodies.size).toBe(1);
    });

    test('422 for a header of more than 256 characters', async ({ send }) => {
      const answer = await send(row, ['Authorization', `Bearer ${'a'.repeat(250)}`]);
      const msg = 'String should have at most 256 characters';
      expect([answer.status, answer.body['detail']]).toEqual([
        422,
        [{ loc: ['header', 'authorization'], msg, type: 'string_too_long' }],
      ]);
      const longest = await send(row, ['Authorization', `Bearer ${'a'.repeat(249)}`]);
      expect(refusal(longest)).toEqual(unauthorized('credential_invalid'));
    });
  });

  test('writes nothing', async ({ api }) => expect(await digestTables(api.connection.pool)).toEqual(before));
});

const refusal = ({ status, headers, body }: RawAnswer) => ({
  status,
  code: body['code'],
  challenge: headers['www-authenticate'],
});
const unauthorized = (code: string) => ({ status: 401, code, challenge: 'Bearer realm="settlement"' });

/** The token of a valid session, a valid API key, and values of the header that are not valid. */
async function createTokens(api: TestApi) {
  const { db } = api.owner;
  const [valid, ended, expired, foreign] = [await signIn(api), await signIn(api), await signIn(api), await signIn(api)];
  const { apiKey } = await api.createCaller();
  await callAs(api, ended, 'POST', '/consumer/auth/logout');
  await db
    .update(consumerSessions)
    .set({ expiresAt: new Date() })
    .where(eq(consumerSessions.consumerId, expired.consumerId));
  await db.update(consumers).set({ environment: 'production' }).where(eq(consumers.consumerId, foreign.consumerId));
  const { token } = valid;
  const bearers = [
    ...[ended.token, expired.token, foreign.token, `cst_${'a'.repeat(43)}`, token.slice(0, -1), `${token}a`],
    ...[valid.consumerId, apiKey],
  ];
  const others = ['Bearer', `Basic ${token}`, token, `Bearer "${token}"`];
  return { apiKey, valid: token, invalid: [...bearers.map((bearer) => `Bearer ${bearer}`), ...others] };
}

describe('a session', () => {
  test('ends after exactly twelve hours', async ({ api, clock }) => {
    const consumer = await signIn(api);
    const { session_expires_at: expiresAt } = jsonOf(await callAs(api, consumer, 'GET', '/consumer/me'));
    const [row] = await api.connection.db
      .select()
      .from(consumerSessions)
      .where(eq(consumerSessions.consumerId, consumer.consumerId));
    expect([expiresAt, (row?.expiresAt.getTime() ?? 0) - (row?.createdAt.getTime() ?? 0)]).toEqual([
      row?.expiresAt.toISOString(),
      12 * HOUR_MS,
    ]);
    clock.advance(12 * HOUR_MS - MINUTE_MS);
    expect((await callAs(api, consumer, 'GET', '/consumer/me')).statusCode).toBe(200);
    clock.advance(MINUTE_MS);
    expect((await callAs(api, consumer, 'GET', '/consumer/me')).statusCode).toBe(401);
  });

  test('ends at once by logout, and no other session does', async ({ api }) => {
    const email = newEmail();
    const [one, other] = [await signIn(api, { email }), await signIn(api, { email })];
    const answer = await callAs(api, one, 'POST', '/consumer/auth/logout');
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    const after = await Promise.all([one, other].map((consumer) => callAs(api, consumer, 'GET', '/consumer/me')));
    expect(after.map(({ statusCode }) => statusCode)).toEqual([401, 200]);
    const revival = api.connection.pool.query(
      'UPDATE consumer_sessions SET ended_at = NULL WHERE ended_at IS NOT NULL AND consumer_id = $1',
      [one.consumerId],
    );
    await expect(revival).rejects.toThrow('stays so');
  });

  test('is valid with the scheme in any case', async ({ api }) => {
    const { token } = await signIn(api);
    const answer = await api.call(null, 'GET', '/consumer/me', undefined, { authorization: `bearer ${token}` });
    expect(answer.statusCode).toBe(200);
  });
});
