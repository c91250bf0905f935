/** A small request costs little: few faults in the answer, counts before contents, and one parse of the body. */
import { describe, expect, vi } from 'vitest';
import { FAULTS_MAX } from '../../api/http/request-fault.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf, settleBody } from '../support/partner.ts';

const test = withApi();

/** As many members as a body may have, about 64 KiB. */
const MANY = 6_000;
const members = <Value>(value: Value): Record<string, Value> =>
  Object.fromEntries(Array.from({ length: MANY }, (_, n) => [`k${n}`, value]));
const key = () => ({ 'idempotency-key': crypto.randomUUID() });

test('thousands of unknown fields get the first hundred faults, in less than the body had', async ({
  api,
  partner,
}) => {
  const body = JSON.stringify(members(0));
  const answer = await api.call(partner, 'POST', '/v2/settle', body);
  expect(answer.statusCode).toBe(422);
  const { detail } = jsonOf(answer);
  expect(detail).toHaveLength(FAULTS_MAX);
  expect([detail[0].loc[0], detail.at(-1).loc[0]]).toEqual(['header', 'body']);
  expect(answer.body.length).toBeLessThan(body.length / 2);
});

describe('one fault, and no look at the members, for', () => {
  test.for([
    ['metadata with thousands of keys', '/v2/settle', () => ({ ...settleBody('x'), metadata: members(1) }), 'metadata'],
    [
      'thousands of signers',
      '/v1/wallets',
      () => ({ name: 'W', threshold: 1, signers: Array.from({ length: MANY }, () => ({ a: 1 })) }),
      'signers',
    ],
    [
      'thousands of event types',
      '/v1/webhooks',
      () => ({ url: 'https://hooks.example/a', event_types: Array.from({ length: MANY }, () => 'x') }),
      'event_types',
    ],
  ] as const)('%s', async ([_, url, body, field], { api, partner }) => {
    const answer = await api.call(partner, 'POST', url, body(), key());
    expect(answer.statusCode).toBe(422);
    const ofField = jsonOf(answer).detail.filter(({ loc }: { loc: string[] }) => loc[1] === field);
    expect(ofField).toEqual([
      { loc: ['body', field], msg: expect.stringContaining('at most'), type: expect.any(String) },
    ]);
  });
});

test('an invalid body is parsed once', async ({ api, partner }) => {
  const body = JSON.stringify({ name: 'a'.repeat(1_000) });
  const parse = vi.spyOn(JSON, 'parse');
  await api.app.inject({
    method: 'POST',
    url: '/v1/wallets',
    headers: { 'x-api-key': partner.apiKey, 'content-type': 'application/json' },
    payload: body,
  });
  const parses = parse.mock.calls.filter(([source]) => source === body).length;
  parse.mockRestore();
  expect(parses).toBe(1);
});

test('a query with a second question mark names its fault', async ({ api, partner }) => {
  const answer = await api.call(partner, 'GET', '/v1/recipients?limit=5?x');
  expect(jsonOf(answer)).toEqual({
    detail: [expect.objectContaining({ loc: ['query', 'limit'], type: 'int_parsing' })],
  });
});
