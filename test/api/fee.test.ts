import { describe, expect } from 'vitest';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';

const PATH = '/v1/fees/estimate';
const body = { corridor: 'US-JM', amount: '1000.00', payment_method: 'ach' };

const test = withApi({ scope: 'read' });

describe('POST /v1/fees/estimate', () => {
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
