import { describe, expect } from 'vitest';
import type { Caller } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';

const NOW = new Date('2026-11-21T08:00:00.000Z');
const PATHS = ['/v2/estimate', '/v1/caribbean/estimate'] as const;
const bodyFor = (path: string) => ({
  corridor: 'US-JM',
  amount: '250',
  ...(path === '/v2/estimate' ? { payment_method: 'card' } : {}),
});

const test = withApi({ scope: 'read', deps: { now: () => NOW } })
  .extend('remote', FILE, openApi({ runtime: 'production', deps: { now: () => NOW } }))
  .extend('remotePartner', FILE, ({ remote }) => remote.createCaller('read'))
  .extend(
    'estimate',
    FILE,
    ({ api, partner }) =>
      (path: string, body: unknown) =>
        api.call(partner, 'POST', path, body),
  );

describe.each(PATHS)('POST %s', (path) => {
  test('401 without a key, whatever the body', async ({ api }) => {
    expect((await api.call(null, 'POST', path, {})).json()).toMatchObject({
      status: 401,
      code: 'credential_missing',
    });
  });

  test('422 that lists every fault of the form at once', async ({ estimate }) => {
    const answer = await estimate(path, { corridor: 'US-XX', amount: 250, payout_rail: 'pigeon', rate: '1.0' });
    expect(answer.statusCode).toBe(422);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    const expected = [
      { loc: ['body', 'corridor'], type: 'enum' },
      { loc: ['body', 'amount'], type: 'string_type' },
      { loc: ['body', 'payout_rail'], type: 'enum' },
      { loc: ['body', 'rate'], type: 'extra_forbidden' },
    ];
    expect(jsonOf(answer).detail).toEqual(
      expect.arrayContaining(expected.map((fault) => expect.objectContaining(fault))),
    );
  });

  test.for(['-1.00', '+1', '1e3', '01', '1,000.00', '', '１２', 'NaN', '1.', '99999999999999999999999'])(
    '422 for the amount %j',
    async (amount, { estimate }) => {
      const answer = await estimate(path, { ...bodyFor(path), amount });
      expect(answer.statusCode).toBe(422);
      expect(new Set(jsonOf(answer).detail.map((fault: { loc: string[] }) => fault.loc.join('.')))).toEqual(
        new Set(['body.amount']),
      );
    },
  );

  test.for([
    ['a rail that the corridor lacks', { corridor: 'GB-BB', payout_rail: 'cash_pickup' }, ['payout_rail']],
    ['an amount out of bounds', { amount: '50000.01' }, ['amount']],
    ['more decimals than the currency has', { amount: '1.005' }, ['amount']],
    [
      'both a wrong rail and a wrong amount',
      { corridor: 'GB-BB', payout_rail: 'cash_pickup', amount: '0.99' },
      ['payout_rail', 'amount'],
    ],
  ] as const)('422 value_error for %s', async ([_name, change, fields], { estimate }) => {
    const answer = await estimate(path, { ...bodyFor(path), ...change });
    expect(answer.statusCode).toBe(422);
    expect(jsonOf(answer).detail.map(({ loc, type }: { loc: string[]; type: string }) => [type, ...loc])).toEqual(
      fields.map((field) => ['value_error', 'body', field]),
    );
  });

  test('422 without a body, as one missing body', async ({ api, partner }) => {
    expect(jsonOf(await api.call(partner, 'POST', path)).detail).toEqual([
      { loc: ['body'], msg: 'Field required', type: 'missing' },
    ]);
  });

  test('200 writes nothing and dispatches nothing', async ({ api, estimate }) => {
    const before = await digestTables(api.connection.pool);
    expect((await estimate(path, bodyFor(path))).statusCode).toBe(200);
    expect(await digestTables(api.connection.pool)).toEqual(before);
    expect(api.nudges()).toBe(0);
  });

  test('200 with the default rail when payout_rail is null', async ({ estimate }) => {
    expect(jsonOf(await estimate(path, { ...bodyFor(path), payout_rail: null }))).toMatchObject({
      payout_rail: 'bank_transfer',
    });
  });

  test('200 with a new estimate_id each time', async ({ estimate }) => {
    const ids = await Promise.all([1, 2].map(async () => jsonOf(await estimate(path, bodyFor(path))).estimate_id));
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(ids[0]).not.toBe(ids[1]);
  });
});

describe('POST /v2/estimate', () => {
  test('422 for ach in a currency that it does not support', async ({ estimate }) => {
    const answer = await estimate('/v2/estimate', {
      ...bodyFor('/v2/estimate'),
      corridor: 'GB-JM',
      payment_method: 'ach',
    });
    expect(jsonOf(answer).detail).toMatchObject([{ loc: ['body', 'payment_method'], type: 'value_error' }]);
  });

  test('422 for the internal method, which is not for partners', async ({ estimate }) => {
    const answer = await estimate('/v2/estimate', { ...bodyFor('/v2/estimate'), payment_method: 'internal' });
    expect(jsonOf(answer).detail).toMatchObject([{ loc: ['body', 'payment_method'], type: 'enum' }]);
  });

  test('200 with the price and the rate for thirty seconds, not executable', async ({ estimate }) => {
    const answer = await estimate('/v2/estimate', { ...bodyFor('/v2/estimate'), payout_rail: 'mobile_money' });
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toEqual({
      estimate_id: expect.any(String),
      corridor: 'US-JM',
      amount: '250.00',
      source_currency: 'USD',
      destination_amount: '37829.63',
      destination_currency: 'JMD',
      payment_method: 'card',
      payout_rail: 'mobile_money',
      input_fee: '7.55',
      platform_fee: '1.88',
      total_fees: '9.43',
      fx_rate: '157.250000',
      rate_source: 'static_fixture',
      rate_lock_seconds: 30,
      rate_locked_until: '2026-11-21T08:00:30.000Z',
      delivery_estimate: { min_minutes: 5, max_minutes: 60 },
      executable: false,
      display_only: true,
      environment: 'local sandbox',
    });
  });

  test('200 in a remote runtime too, and still not executable', async ({ remote, remotePartner }) => {
    const answer = await remote.call(remotePartner, 'POST', '/v2/estimate', bodyFor('/v2/estimate'));
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toMatchObject({
      rate_source: 'static_fixture',
      executable: false,
      display_only: true,
      environment: 'production',
    });
  });
});

describe('POST /v1/caribbean/estimate', () => {
  test('422 for a payment method: the off-ramp is funded internally', async ({ estimate }) => {
    const answer = await estimate('/v1/caribbean/estimate', {
      ...bodyFor('/v1/caribbean/estimate'),
      payment_method: 'card',
    });
    expect(jsonOf(answer).detail).toEqual([
      { loc: ['body', 'payment_method'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' },
    ]);
  });

  test('503 in a remote runtime, after credential and rules were checked', async ({ remote, remotePartner }) => {
    const path = '/v1/caribbean/estimate';
    const ask = async (who: Caller | null, change: object = {}) =>
      (await remote.call(who, 'POST', path, { ...bodyFor(path), ...change })).statusCode;
    expect([await ask(null), await ask(remotePartner, { amount: '0.01' }), await ask(remotePartner)]).toEqual([
      401, 422, 503,
    ]);
    expect(jsonOf(await remote.call(remotePartner, 'POST', path, bodyFor(path)))).toMatchObject({
      code: 'local_sandbox_only',
    });
  });

  test('200 with the price, without a payment method and without an input fee', async ({ estimate }) => {
    const answer = await estimate('/v1/caribbean/estimate', bodyFor('/v1/caribbean/estimate'));
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toEqual({
      estimate_id: expect.any(String),
      corridor: 'US-JM',
      amount: '250.00',
      source_currency: 'USD',
      destination_amount: '39016.87',
      destination_currency: 'JMD',
      payout_rail: 'bank_transfer',
      input_fee: '0.00',
      platform_fee: '1.88',
      total_fees: '1.88',
      fx_rate: '157.250000',
      rate_source: 'static_fixture',
      rate_lock_seconds: 30,
      rate_locked_until: '2026-11-21T08:00:30.000Z',
      delivery_estimate: { min_minutes: 60, max_minutes: 1440 },
      executable: false,
      display_only: true,
      environment: 'local sandbox',
    });
  });
});
