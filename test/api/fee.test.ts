import { describe, expect } from 'vitest';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { faultsOf } from '../support/refusal.ts';

const PATH = '/v1/fees/estimate';
const body = { corridor: 'US-JM', amount: '1000.00', payment_method: 'ach' };

const test = withApi({ scope: 'read' });

describe('POST /v1/fees/estimate', () => {
  test.for([
    ['a wire that its fees use up', { payment_method: 'wire', amount: '15.00' }, 'amount'],
    ['more than ach takes', { amount: '25000.01' }, 'amount'],
    ['ach in another currency than USD', { corridor: 'CA-TT' }, 'payment_method'],
  ] as const)('422 value_error for %s', async ([_name, change, field], { api, partner }) => {
    const answer = await api.call(partner, 'POST', PATH, { ...body, ...change });
    expect([answer.statusCode, faultsOf(answer)]).toEqual([422, [[`body.${field}`, 'value_error']]]);
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
