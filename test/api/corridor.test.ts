import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CORRIDOR_IDS } from '../../domain/corridor.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { type Json, jsonOf } from '../support/partner.ts';

const PATH = '/v1/caribbean/corridors';

let local: TestApi;
let remote: TestApi;

beforeAll(async () => {
  [local, remote] = await Promise.all([createTestApi(), createTestApi({ runtime: 'production' })]);
});

afterAll(() => Promise.all([local.close(), remote.close()]));

const read = async (api: TestApi) => jsonOf(await api.call(await api.createCaller('read'), 'GET', PATH));

describe('GET /v1/caribbean/corridors', () => {
  test('401 without a key', async () => {
    expect((await local.call(null, 'GET', PATH)).statusCode).toBe(401);
  });

  test('gates every corridor in a remote runtime', async () => {
    const answer = await read(remote);
    expect(answer).toMatchObject({ rate_source: 'static_fixture', readiness_asserted: false });
    expect(new Set(answer.corridors.map((corridor: Json) => corridor.state))).toEqual(new Set(['gated']));
  });

  test('calls no corridor live and no rail implemented', async () => {
    const { corridors } = await read(local);
    expect(new Set(corridors.map((corridor: Json) => corridor.state))).toEqual(new Set(['local sandbox']));
    expect(
      new Set(corridors.flatMap((corridor: Json) => corridor.rails.map((rail: Json) => rail.implementation_state))),
    ).toEqual(new Set(['partial']));
  });

  test('lists every corridor once, in the order of the contract', async () => {
    expect((await read(local)).corridors.map((corridor: Json) => corridor.corridor)).toEqual(CORRIDOR_IDS);
  });

  test('tells of each what it costs, how it pays out and what it takes', async () => {
    const { schema_version, corridors } = await read(local);
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
