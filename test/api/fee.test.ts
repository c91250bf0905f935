import { describe, expect } from 'vitest';
import type { Caller } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';

const PATH = '/v1/fees/estimate';
const body = { corridor: 'US-JM', amount: '1000.00', payment_method: 'ach' };

const test = withApi({ scope: 'read' }).extend('remote', FILE, openApi({ runtime: 'remote-sandbox' }));

describe('POST /v1/fees/estimate', () => {
  test('401 without a key', async ({ api }) => {
    expect((await api.call(null, 'POST', PATH, body)).statusCode).toBe(401);
  });

  test('422 that lists every fault of the form at once', async ({ api, partner }) => {
    const answer = await api.call(partner, 'POST', PATH, { amount: '-1', payout_rail: 'bank_transfer' });
    expect(answer.statusCode).toBe(422);
    const faults = jsonOf(answer).detail.map(({ loc, type }: { loc: string[]; type: string }) => [loc.join('.'), type]);
    expect(new Set(faults.map(String))).toEqual(
      new Set([
        'body.corridor,missing',
        'body.amount,string_pattern_mismatch',
        'body.payment_method,missing',
        'body.payout_rail,extra_forbidden',
      ]),
    );
  });

  test.for([
    ['a wire that its fees use up', { payment_method: 'wire', amount: '15.00' }, 'amount'],
    ['more than ach takes', { amount: '25000.01' }, 'amount'],
    ['ach in another currency than USD', { corridor: 'CA-TT' }, 'payment_method'],
  ] as const)('422 value_error for %s', async ([_name, change, field], { api, partner }) => {
    const answer = await api.call(partner, 'POST', PATH, { ...body, ...change });
    expect(answer.statusCode).toBe(422);
    expect(jsonOf(answer).detail).toMatchObject([{ loc: ['body', field], type: 'value_error' }]);
  });

  test('503 in a remote runtime, after credential and rules were checked, and nothing is written', async ({
    remote,
  }) => {
    const caller = await remote.createCaller('read');
    const before = await digestTables(remote.connection.pool);
    const ask = async (who: Caller | null, change: object = {}) =>
      (await remote.call(who, 'POST', PATH, { ...body, ...change })).statusCode;
    expect([await ask(null), await ask(caller, { amount: '25000.01' }), await ask(caller)]).toEqual([401, 422, 503]);
    expect(jsonOf(await remote.call(caller, 'POST', PATH, body))).toMatchObject({
      code: 'local_sandbox_only',
      status: 503,
    });
    expect(await digestTables(remote.connection.pool)).toEqual(before);
  });

  test('200 with the lines and their sum, not executable', async ({ api, partner }) => {
    const answer = await api.call(partner, 'POST', PATH, body);
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
