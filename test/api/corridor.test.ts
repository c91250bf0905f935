import { describe, expect } from 'vitest';
import type { TestApi } from '../support/api.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';

const PATH = '/v1/caribbean/corridors';

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
        { rail: 'bank_transfer', implementation_state: 'partial', delivery_minutes: { min: 60, max: 1440 } },
        { rail: 'mobile_money', implementation_state: 'partial', delivery_minutes: { min: 5, max: 60 } },
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
