import { describe, expect } from 'vitest';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { expectUnchanged } from '../support/refusal.ts';

const NOW = new Date('2026-11-21T08:00:00.000Z');
const PATHS = ['/v2/estimate', '/v1/caribbean/estimate'] as const;
const bodyFor = (path: string) => ({
  corridor: 'US-JM',
  amount: '250',
  ...(path === '/v2/estimate' ? { payment_method: 'card' } : { payout_rail: null }),
});

/** What every estimate of 250.00 to Jamaica has, whatever the way to pay. */
const COMMON = {
  estimate_id: expect.any(String),
  corridor: 'US-JM',
  amount: '250.00',
  source_currency: 'USD',
  destination_currency: 'JMD',
  platform_fee: '1.88',
  fx_rate: '157.250000',
  rate_source: 'static_fixture',
  rate_lock_seconds: 30,
  rate_locked_until: '2026-11-21T08:00:30.000Z',
  executable: false,
  display_only: true,
  environment: 'local sandbox',
};

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
  test('200 writes nothing and dispatches nothing', async ({ api, estimate }) => {
    await expectUnchanged(api.connection.pool, async () => {
      expect((await estimate(path, bodyFor(path))).statusCode).toBe(200);
    });
    expect(api.nudges()).toBe(0);
  });

  test('200 with a new estimate_id each time', async ({ estimate }) => {
    const ids = await Promise.all([1, 2].map(async () => jsonOf(await estimate(path, bodyFor(path))).estimate_id));
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(ids[0]).not.toBe(ids[1]);
  });
});

describe('POST /v2/estimate', () => {
  test('200 with the price and the rate for thirty seconds, not executable', async ({ estimate }) => {
    const answer = await estimate('/v2/estimate', { ...bodyFor('/v2/estimate'), payout_rail: 'mobile_money' });
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toEqual({
      ...COMMON,
      destination_amount: '37829.63',
      payment_method: 'card',
      payout_rail: 'mobile_money',
      input_fee: '7.55',
      total_fees: '9.43',
      delivery_estimate: { min_minutes: 5, max_minutes: 60 },
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
  test('200 with the price by the default rail, without a payment method and without an input fee', async ({
    estimate,
  }) => {
    const answer = await estimate('/v1/caribbean/estimate', bodyFor('/v1/caribbean/estimate'));
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toEqual({
      ...COMMON,
      destination_amount: '39016.87',
      payout_rail: 'bank_transfer',
      input_fee: '0.00',
      total_fees: '1.88',
      delivery_estimate: { min_minutes: 60, max_minutes: 1440 },
    });
  });
});

describe('POST /v1/fees/estimate', () => {
  test('200 with the lines and their sum, not executable', async ({ estimate }) => {
    const answer = await estimate('/v1/fees/estimate', { corridor: 'US-JM', amount: '1000.00', payment_method: 'ach' });
    expect(answer.statusCode).toBe(200);
    expect(jsonOf(answer)).toEqual({
      fees: [
        { type: 'input_fee', amount: '5.00', currency: 'USD' },
        { type: 'platform_fee', amount: '7.50', currency: 'USD' },
      ],
      total_fees: '12.50',
      executable: false,
      environment: 'local sandbox',
    });
  });
});
