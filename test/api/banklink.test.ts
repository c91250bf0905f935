import { describe, expect } from 'vitest';
import type { Caller, TestApi } from '../support/api.ts';
import { linkAccount } from '../support/bankledger.ts';
import { dumpTables } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settleBody } from '../support/partner.ts';
import { expectInvalid, faultsOf } from '../support/refusal.ts';

const MINUTE_MS = 60_000;

const test = withApi({ scope: 'settle' })
  .extend(
    'link',
    FILE,
    ({ api, partner }) =>
      async (by: Caller = partner, body?: unknown): Promise<Json> =>
        jsonOf(await api.call(by, 'POST', '/v2/banklink/link-token', body)),
  )
  .extend(
    'exchange',
    FILE,
    ({ api, partner }) =>
      (publicToken: unknown, by: Caller = partner) =>
        api.call(by, 'POST', '/v2/banklink/exchange', { public_token: publicToken }),
  )
  .extend('recipientId', FILE, async ({ api, partner }) =>
    createRecipient(api, await api.createKey(partner.orgId, 'full')),
  )
  /** Pays a recipient from the account of this token. */
  .extend(
    'settle',
    FILE,
    ({ api, partner, recipientId }) =>
      (token: string, overrides: Record<string, unknown> = {}, key: string = crypto.randomUUID()) => {
        const byAch = { payment_method: 'ach', card_token: undefined, banklink_account_token: token };
        const body = settleBody(recipientId, { ...byAch, ...overrides });
        return api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
      },
  );

const refusal = async (answer: ReturnType<TestApi['call']>) => {
  const { statusCode, body } = await answer;
  return [
    statusCode,
    jsonOf(await answer).detail?.map((fault: Json) => `${fault.loc.join('.')} ${fault.type}`),
    body.includes('public-sandbox-'),
  ];
};

describe('a public token', () => {
  test('422 for an issued one the second time, after 30 minutes and for another organization', async ({
    api,
    clock,
    link,
    exchange,
  }) => {
    const { sandbox_public_token: once } = await link();
    expect((await exchange(once)).statusCode).toBe(200);
    expect(await refusal(exchange(once))).toEqual([422, ['body.public_token value_error'], false]);

    const { sandbox_public_token: late } = await link();
    clock.advance(30 * MINUTE_MS);
    expect((await refusal(exchange(late)))[0]).toBe(422);
    clock.advance(-30 * MINUTE_MS);

    const { sandbox_public_token: own } = await link();
    const stranger = await api.createCaller('settle');
    expect((await refusal(exchange(own, stranger)))[0]).toBe(422);
    expect((await exchange(own)).statusCode).toBe(200);
  });

  test('422 for a used one also when its row was deleted', async ({ api, link, exchange }) => {
    const { sandbox_public_token: once } = await link();
    expect((await exchange(once)).statusCode).toBe(200);
    await api.owner.pool.query('DELETE FROM banklink_tokens');
    expect(await refusal(exchange(once))).toEqual([422, ['body.public_token value_error'], false]);
  });

  test('200 for one of twenty exchanges of an issued one at the same moment', async ({ link, exchange }) => {
    const { sandbox_public_token: publicToken } = await link();
    const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(publicToken)));
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 422)]);
  });

  test('200 each time for one that was not issued, with the same test account', async ({ exchange }) => {
    const first = jsonOf(await exchange('public-sandbox-checking'));
    const second = jsonOf(await exchange('public-sandbox-checking'));
    expect(second.account).toEqual(first.account);
    expect(second.access_token).not.toBe(first.access_token);
    expect(first).toEqual({
      access_token: expect.any(String),
      account: { mask: expect.stringMatching(/^[0-9]{4}$/), type: 'checking', name: 'Sandbox Checking (simulation)' },
      simulation: true,
    });
  });
});

describe('a link token', () => {
  test.for([undefined, {}, { user_reference: null }, { user_reference: 'payer-7' }])(
    '200 with the body %j',
    async (body, { partner, link }) => {
      const before = Date.now();
      const answer = await link(partner, body);
      expect(answer).toEqual({
        link_token: expect.stringMatching(/^link-sandbox-/),
        sandbox_public_token: expect.stringMatching(/^public-sandbox-link-/),
        expires_at: expect.any(String),
        environment: 'local sandbox',
        simulation: true,
      });
      const lifetimeMs = new Date(answer.expires_at).getTime() - before;
      expect(lifetimeMs).toBeGreaterThanOrEqual(30 * MINUTE_MS);
      expect(lifetimeMs).toBeLessThan(31 * MINUTE_MS);
    },
  );
});

describe('an access token', () => {
  test("422 for another organization's token, and nothing is stored", async ({ api, settle }) => {
    const token = await linkAccount(api, await api.createCaller());
    await expectInvalid(api, () => settle(token), [['body.banklink_account_token', 'value_error']]);
  });

  test('422 for every altered token', async ({ api, partner, settle }) => {
    const token = await linkAccount(api, partner);
    const flipped = Array.from(
      token,
      (character, index) => `${token.slice(0, index)}${character === 'A' ? 'B' : 'A'}${token.slice(index + 1)}`,
    );
    const others = [
      `${token}A`,
      `${token}=`,
      `${token}.`,
      `${token}.x`,
      token.slice(0, -1),
      // As long as a nonce, and shorter.
      token.replace(/\..*$/, `.${'A'.repeat(16)}`),
      token.replace(/\..*$/, '.AAAA'),
      token.slice(15),
      `x${token}`,
      token.toLowerCase(),
      'public-sandbox-manual',
      'tok_visa',
    ];
    for (const altered of [...flipped, ...others])
      expect([altered, (await settle(altered)).statusCode]).toEqual([altered, 422]);
  });

  test('422 for the amount and the token together, then 404 for the recipient', async ({ api, partner, settle }) => {
    const nobody = { recipient_id: crypto.randomUUID() };
    const form = await settle('access-sandbox-none', { ...nobody, amount: '0.01' });
    expect([form.statusCode, faultsOf(form)]).toEqual([
      422,
      [
        ['body.amount', 'value_error'],
        ['body.banklink_account_token', 'value_error'],
      ],
    ]);
    const token = await settle('access-sandbox-none', nobody);
    expect([token.statusCode, faultsOf(token)]).toEqual([422, [['body.banklink_account_token', 'value_error']]]);
    expect((await settle(await linkAccount(api, partner), nobody)).statusCode).toBe(404);
  });

  test('202 for its own organization, and a replay answers the same after the keys have changed', async ({
    api,
    partner,
    settle,
  }) => {
    const token = await linkAccount(api, partner);
    const key = crypto.randomUUID();
    const first = await settle(token, {}, key);
    expect(first.statusCode, first.body).toBe(202);
    const { tryOpen } = api.deps.sealer;
    Object.assign(api.deps.sealer, { tryOpen: () => undefined });
    const again = await settle(token, {}, key);
    Object.assign(api.deps.sealer, { tryOpen });
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([202, first.body, 'true']);
  });

  test('no token, no account and no reference of a payer is readable in the database', async ({
    api,
    partner,
    link,
    settle,
  }) => {
    const publicToken = `public-sandbox-${crypto.randomUUID()}`;
    const token = await linkAccount(api, partner, publicToken);
    const { sandbox_public_token: issued } = await link(partner, { user_reference: 'payer-of-the-test' });
    expect((await settle(token)).statusCode).toBe(202);
    const dump = await dumpTables(api.connection.pool);
    for (const secret of [publicToken, token, issued, 'payer-of-the-test']) expect(dump).not.toContain(secret);
  });
});
