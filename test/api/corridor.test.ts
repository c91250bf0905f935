import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { CORRIDORS, RAIL_REQUIREMENTS } from '../../domain/corridor.ts';
import type { TestApi } from '../support/api.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { type Json, jsonOf, settleBody } from '../support/partner.ts';

const COUNTRY = { field: 'country', rule: 'Must be JM.' };
const PATH = '/v1/caribbean/corridors';

const MOBILE = RAIL_REQUIREMENTS.mobile_money.map(({ field }) => field);

const test = withApi().extend('remote', FILE, openApi({ runtime: 'production' }));

const read = async (api: TestApi) => jsonOf(await api.call(await api.createCaller('read'), 'GET', PATH));

describe('GET /v1/caribbean/corridors', () => {
  test('200 with every corridor gated in a remote runtime', async ({ remote }) => {
    const answer = await read(remote);
    expect(answer).toMatchObject({ rate_source: 'static_fixture', readiness_asserted: false });
    expect(new Set(answer.corridors.map((corridor: Json) => corridor.state))).toEqual(new Set(['gated']));
  });

  test('200 with no corridor live and no rail implemented', async ({ api }) => {
    const { corridors } = await read(api);
    expect(new Set(corridors.map((corridor: Json) => corridor.state))).toEqual(new Set(['local sandbox']));
    expect(
      new Set(corridors.flatMap((corridor: Json) => corridor.rails.map((rail: Json) => rail.implementation_state))),
    ).toEqual(new Set(['partial']));
  });

  test('a recipient with what a rail requires is accepted for it, and one without any of it is not', async ({
    api,
    partner,
  }) => {
    const values: Json = {
      'bank_details.bank_name': 'NCB',
      'bank_details.account_number': '404123456',
      'bank_details.currency': 'JMD',
      'mobile_details.provider': 'Lynk',
      'mobile_details.phone_number': '+18765550123',
      name: 'Marcia Brown',
    };
    const place = (fields: readonly string[]): Json => {
      const body: Json = { kind: 'vendor', entity_type: 'individual', country: 'JM', name: 'Marcia Brown' };
      for (const field of fields) {
        const [first = '', second] = field.split('.');
        if (second === undefined) body[first] = values[field];
        else body[first] = { ...body[first], [second]: values[field] };
      }
      return body;
    };
    for (const rail of CORRIDORS['US-JM'].rails) {
      const required = RAIL_REQUIREMENTS[rail].map(({ field }) => field);
      // Every recipient has one kind of details; for cash it is any.
      const sent = required.includes('name') ? [...required, ...MOBILE] : required;
      const made = await api.call(partner, 'POST', '/v1/recipients', place(sent));
      expect(made.statusCode, made.body).toBe(201);
      const body = settleBody(jsonOf(made).recipient_id, { payout_rail: rail });
      const accepted = await api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': newId() });
      expect(accepted.statusCode, accepted.body).toBe(202);
      for (const left of required.filter((field) => field !== 'name')) {
        const without = sent.filter((field) => field !== left);
        expect((await api.call(partner, 'POST', '/v1/recipients', place(without))).statusCode, left).toBe(422);
      }
    }
  });

  test('200 with the fees, rails and limits of each corridor', async ({ api }) => {
    const { schema_version, corridors } = await read(api);
    expect(schema_version).toBe('1');
    expect(corridors[1]).toEqual({
      corridor: 'CA-JM',
      source_country: 'CA',
      source_currency: 'CAD',
      destination_country: 'JM',
      destination_currency: 'JMD',
      fx_rate: '112.300000',
      fees: [
        { type: 'input_fee', payment_method: 'card', percent: '2.90', fixed: '0.30', minimum: null, maximum: null },
        { type: 'input_fee', payment_method: 'wire', percent: '0.00', fixed: '15.00', minimum: null, maximum: null },
        { type: 'input_fee', payment_method: 'internal', percent: '0.00', fixed: '0.00', minimum: null, maximum: null },
        { type: 'platform_fee', payment_method: null, percent: '0.75', fixed: '0.00', minimum: '0.50', maximum: null },
      ],
      rails: [
        {
          rail: 'bank_transfer',
          implementation_state: 'partial',
          delivery_minutes: { min: 60, max: 1440 },
          requirements: [COUNTRY, ...RAIL_REQUIREMENTS.bank_transfer],
        },
        {
          rail: 'mobile_money',
          implementation_state: 'partial',
          delivery_minutes: { min: 5, max: 60 },
          requirements: [COUNTRY, ...RAIL_REQUIREMENTS.mobile_money],
        },
      ],
      state: 'local sandbox',
      limits: [
        { payment_method: 'card', minimum: '1.00', maximum: '10000.00' },
        { payment_method: 'wire', minimum: '1.00', maximum: '50000.00' },
        { payment_method: 'internal', minimum: '1.00', maximum: '50000.00' },
      ],
    });
  });
});
