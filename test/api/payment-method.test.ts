import { describe, expect } from 'vitest';
import type { TestApi } from '../support/api.ts';
import { FILE, openApi, withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';

const PATH = '/v2/payment-methods';

const test = withApi().extend('remote', FILE, openApi({ runtime: 'remote-sandbox' }));

const read = async (api: TestApi) => jsonOf(await api.call(await api.createCaller('read'), 'GET', PATH));
const postureOf = (answer: Json) =>
  answer.methods.map((method: Json) => [method.id, method.implementation_state, method.admission_state]);

describe('GET /v2/payment-methods', () => {
  test('200 with every method gated in a remote runtime', async ({ remote }) => {
    const answer = await read(remote);
    expect(answer).toMatchObject({ environment: 'remote sandbox', readiness_attested: false });
    expect(postureOf(answer)).toEqual([
      ['card', 'implemented', 'gated'],
      ['ach', 'implemented', 'gated'],
      ['wire', 'implemented', 'gated'],
      ['stablecoin', 'not_implemented', 'gated'],
    ]);
  });

  test('200 with the implemented methods admitted to the local sandbox', async ({ api }) => {
    const answer = await read(api);
    expect(answer).toMatchObject({ environment: 'local sandbox', readiness_attested: false });
    expect(postureOf(answer)).toEqual([
      ['card', 'implemented', 'local sandbox'],
      ['ach', 'implemented', 'local sandbox'],
      ['wire', 'implemented', 'local sandbox'],
      ['stablecoin', 'not_implemented', 'gated'],
    ]);
  });

  test('200 with the terms of each implemented method', async ({ api }) => {
    const { methods } = await read(api);
    expect(methods[1]).toEqual({
      id: 'ach',
      name: 'ACH debit',
      provider: 'bankledger',
      implementation_state: 'implemented',
      admission_state: 'local sandbox',
      timing: 'asynchronous',
      source_currencies: ['USD'],
      limits: { minimum: '1.00', maximum: '25000.00' },
      fees: [
        { type: 'input_fee', payment_method: 'ach', percent: '0.80', fixed: '0.00', minimum: '0.25', maximum: '5.00' },
        { type: 'platform_fee', payment_method: null, percent: '0.75', fixed: '0.00', minimum: '0.50', maximum: null },
      ],
      required_fields: ['banklink_account_token'],
    });
    expect(
      methods.map((method: Json) => [
        method.id,
        method.timing,
        method.source_currencies,
        method.limits,
        method.required_fields,
      ]),
    ).toEqual([
      ['card', 'synchronous', ['USD', 'CAD', 'GBP'], { minimum: '1.00', maximum: '10000.00' }, ['card_token']],
      ['ach', 'asynchronous', ['USD'], { minimum: '1.00', maximum: '25000.00' }, ['banklink_account_token']],
      ['wire', 'asynchronous', ['USD', 'CAD', 'GBP'], { minimum: '1.00', maximum: '50000.00' }, []],
      ['stablecoin', 'asynchronous', [], null, []],
    ]);
  });
});
