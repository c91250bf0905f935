import type { LightMyRequestResponse } from 'fastify';
import { describe, expect } from 'vitest';
import { JSON_DEPTH_MAX } from '../../api/http/json-body.ts';
import { callAs, signIn } from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { type Json, jsonOf, recipientBody, settleBody } from '../support/partner.ts';

const CANARY = 'CANARY-4f9a7c';

const test = withApi({ scope: 'full' }).extend(
  'post',
  FILE,
  ({ api, partner }) =>
    (body: unknown, headers: Record<string, string> = {}) =>
      api.call(partner, 'POST', '/v1/recipients', body, headers),
);

const outcome = (answer: LightMyRequestResponse) => {
  const body = jsonOf(answer);
  return answer.statusCode === 422
    ? [422, body.detail.map(({ loc, type }: Json) => [loc.join('.'), type])]
    : [answer.statusCode, body.code];
};
const json = (name: string, value: string) => `{"${name}":${value}}`;

describe('a body that is not JSON', () => {
  test.for([
    ['a form', 'name=Marcia', 0],
    ['an object without an end', '{"name": ', 9],
    ['a comma too many', '{"name": "Marcia",}', 18],
    ['two values', '{} {}', 3],
    ['a comment', '{/* */}', 1],
    ['a number with a leading zero', '{"amount": 01}', 12],
    ['a control character in a string', '{"name": "a\tb"}', 11],
  ] as const)('422 json_invalid with the position, for %s', async ([_case, body, position], { post }) => {
    const answer = await post(body);
    expect(answer.statusCode).toBe(422);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(jsonOf(answer)).toEqual({
      detail: [{ loc: ['body', position], msg: 'JSON decode error', type: 'json_invalid' }],
    });
  });

  test.for([
    ['the same name twice', '{"name":"a","name":"b"}'],
    ['the same name twice, once escaped', '{"name":"a","n\\u0061me":"b"}'],
    ...[' ', '\t', '\n', '\r'].map(
      (blank) => [`the same name twice before ${JSON.stringify(blank)}`, `{"a"${blank}:1,"a"${blank}:1}`] as const,
    ),
    ['the same name twice, deep inside', '{"metadata":{"a":{"b":1,"b":1}}}'],
    ['a name that would touch a prototype', '{"__proto__":{"is_active":true}}'],
    ['such a name escaped', '{"\\u005f_proto__":{}}'],
    ['arrays nested too deep', json('metadata', '['.repeat(JSON_DEPTH_MAX) + ']'.repeat(JSON_DEPTH_MAX))],
    ['objects nested 10 000 deep', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['half a surrogate pair in UTF-8', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
  ] as const)('422 json_invalid for %s', async ([_case, body], { post }) => {
    const answer = await post(body);
    expect(answer.statusCode).toBe(422);
    expect(jsonOf(answer).detail).toEqual([
      { loc: ['body', expect.any(Number)], msg: expect.stringMatching(/^JSON decode error/), type: 'json_invalid' },
    ]);
  });

  test('201 for brackets in strings, and for the same name in two objects', async ({ post }) => {
    const body = recipientBody({ name: '{"a":1,"a":[[[', metadata: { name: 'a', kind: '\\":{' } });
    expect((await post(body)).statusCode).toBe(201);
  });

  test('422 by the schema, not by depth, at the deepest nesting that is allowed', async ({ post }) => {
    const depth = JSON_DEPTH_MAX - 1;
    expect(outcome(await post(recipientBody({ metadata: JSON.parse('['.repeat(depth) + ']'.repeat(depth)) })))).toEqual(
      [422, [['body.metadata', 'dict_type']]],
    );
  });

  test('422 by the schema for a string of 60 KiB', async ({ post }) => {
    expect(outcome(await post(recipientBody({ name: '\\"'.repeat(15_000) })))).toEqual([
      422,
      [['body.name', 'string_too_long']],
    ]);
  });
});

// attack/bounds.test.ts has the bounds of each.
describe('identifiers in a path', () => {
  test.for([
    ['512 characters', 'a'.repeat(512), 'string_too_long'],
    ['a NUL', 'a%00', 'value_error'],
    ['letters that are not NFC', 'e%CC%81', 'value_error'],
  ] as const)('422 for an id of %s', async ([_case, id, type], { api, partner }) => {
    expect(outcome(await api.call(partner, 'GET', `/v1/recipients/${id}`))).toEqual([
      422,
      [['path.recipient_id', type]],
    ]);
  });
});

describe('a 422 lists', () => {
  const TOO_LONG = 'a'.repeat(37);
  const DIGITS = '9'.repeat(400);
  const KEYED = { 'idempotency-key': crypto.randomUUID() };
  const SIGNER = { address: `0x${'a'.repeat(40)}` };
  const cheap = (changes: Json = {}) => settleBody('r', { amount: '0.01', more: 1, ...changes });
  const FORM_AND_PRICE = [
    ['body.more', 'extra_forbidden'],
    ['body.amount', 'value_error'],
  ] as const;
  type Request = readonly [method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body?: Json, headers?: typeof KEYED];
  test.for<[what: string, request: Request, faults: readonly (readonly [place: string, type: string])[]]>([
    [
      'the faults of path and body together, in this order',
      ['PUT', `/v1/recipients/${TOO_LONG}`, { name: '', more: 1 }],
      [
        ['path.recipient_id', 'string_too_long'],
        ['body.name', 'string_too_short'],
        ['body.more', 'extra_forbidden'],
      ],
    ],
    [
      'the faults of path and body together, also where no body is taken',
      ['DELETE', `/v1/recipients/${TOO_LONG}`, { more: 1 }],
      [
        ['path.recipient_id', 'string_too_long'],
        ['body.more', 'extra_forbidden'],
      ],
    ],
    ['the faults of the price and of the form together', ['POST', '/v2/settle', cheap(), KEYED], FORM_AND_PRICE],
    [
      'the same of the legacy route',
      ['POST', '/v1/caribbean/settle', cheap({ payment_method: undefined, card_token: undefined }), KEYED],
      FORM_AND_PRICE,
    ],
    [
      'the faults of the price together with that of the header',
      ['POST', '/v2/settle', settleBody('r', { amount: '0.01' })],
      [
        ['header.Idempotency-Key', 'missing'],
        ['body.amount', 'value_error'],
      ],
    ],
    [
      'the rules of a recipient together with faults of other fields',
      ['POST', '/v1/recipients', recipientBody({ name: '', bank_details: null })],
      [
        ['body.name', 'string_too_short'],
        ['body', 'value_error'],
      ],
    ],
    [
      'the rules of a wallet together with faults of other fields',
      ['POST', '/v1/wallets', { name: '', signers: [SIGNER, SIGNER], threshold: 3 }],
      [
        ['body.name', 'string_too_short'],
        ['body.signers.1.address', 'value_error'],
        ['body.threshold', 'value_error'],
      ],
    ],
    [
      'the faults of path and query together',
      ['GET', `/v1/orgs/${TOO_LONG}/keys?limit=0&offset=x`],
      [
        ['path.org_id', 'string_too_long'],
        ['query.limit', 'greater_than_equal'],
        ['query.offset', 'int_parsing'],
      ],
    ],
    [
      'the bound that an integer of a query breaks, however many digits it has',
      ['GET', `/v1/recipients?limit=${DIGITS}&offset=-${DIGITS}`],
      [
        ['query.limit', 'less_than_equal'],
        ['query.offset', 'greater_than_equal'],
      ],
    ],
    [
      'a parameter that comes after a thousand others',
      ['GET', `/v2/settlements?${'&'.repeat(1_000)}more=1`],
      [['query.more', 'extra_forbidden']],
    ],
    ['nothing of a valid body', ['POST', '/v2/settle', settleBody('r')], [['header.Idempotency-Key', 'missing']]],
    [
      'nothing of a valid query',
      ['GET', `/v1/orgs/${TOO_LONG}/keys?limit=5&offset=5`],
      [['path.org_id', 'string_too_long']],
    ],
    [
      'one fault for each value',
      ['POST', '/v1/recipients', recipientBody({ name: ` ${'a'.repeat(200)}\u0000`, email: ' @', phone: '1' })],
      [
        ['body.name', 'string_too_long'],
        ['body.email', 'string_too_short'],
        ['body.phone', 'string_too_short'],
      ],
    ],
  ])('%s', async ([_what, request, faults], { api, partner }) => {
    expect(outcome(await api.call(partner, ...request))).toEqual([422, faults]);
  });

  // Once a field has a fault, zod itself judges no rule across fields.
  const OTHER = { recipient_id: 5, reference: '' };
  const OTHER_FAULTS = [
    ['body.recipient_id', 'string_type'],
    ['body.reference', 'string_too_short'],
  ] as const;
  test.for<[string, Json, [string, string][]]>([
    ['the token', { card_token: undefined }, [['body.card_token', 'missing']]],
    ['the price', { amount: '0.01' }, [['body.amount', 'value_error']]],
    [
      'the rail and the method of the corridor',
      { corridor: 'GB-JM', payout_rail: 'cash_pickup', payment_method: 'ach' },
      [
        ['body.card_token', 'value_error'],
        ['body.banklink_account_token', 'missing'],
        ['body.payout_rail', 'value_error'],
        ['body.payment_method', 'value_error'],
      ],
    ],
  ])('of a settlement, the rule about %s together with faults of other fields', async (wanted, { api, partner }) => {
    const [, changes, faults] = wanted;
    const body = settleBody('r', { ...OTHER, ...changes });
    const answer = await api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
    const [status, listed] = outcome(answer);
    expect(status).toBe(422);
    expect(new Set(listed)).toEqual(new Set([...OTHER_FAULTS, ...faults]));
  });

  test('the rule about a contact, whatever the form of what is given', async ({ api }) => {
    const body = { email: '', phone: '+18765550123' };
    expect(outcome(await api.call(null, 'POST', '/consumer/auth/request-otp', body))).toEqual([
      422,
      [
        ['body.email', 'string_too_short'],
        ['body', 'value_error'],
      ],
    ]);
  });

  test('what is missing of a transfer, whatever the form of what is given', async ({ api }) => {
    const body = { recipient_id: 'r', amount: '1,000.00', payment_method: null };
    const headers = { 'idempotency-key': crypto.randomUUID() };
    expect(outcome(await callAs(api, await signIn(api), 'POST', '/consumer/transfers', body, headers))).toEqual([
      422,
      [
        ['body.amount', 'string_pattern_mismatch'],
        ['body.corridor', 'missing'],
        ['body.payment_method', 'missing'],
      ],
    ]);
  });

  test.for(['/v1/recipients?country=x', '/v2/settlements?corridor=x', '/v1/events?type=x'] as const)(
    'the rule about after and offset together with faults of filters: %s',
    async (url, { api, partner }) => {
      const [status, listed] = outcome(await api.call(partner, 'GET', `${url}&offset=1&after=1-a`));
      expect([status, listed]).toEqual([
        422,
        [
          [expect.any(String), expect.any(String)],
          ['query.after', 'value_error'],
        ],
      ]);
    },
  );

  test.for(['2026-11-21', '2026-11-21T08:00:00', '2026-11-21T08:00:00+02:00'])(
    'what a moment must be, for a day, a time without zone, and a plus that means a space: %s',
    async (given, { api, partner }) => {
      const { statusCode, body } = await api.call(partner, 'GET', `/v2/settlements?created_from=${given}`);
      expect([statusCode, JSON.parse(body)]).toEqual([
        422,
        {
          detail: [
            {
              loc: ['query', 'created_from'],
              msg: 'Value error, must be an RFC 3339 date and time with its zone, such as 2026-11-21T08:00:00Z',
              type: 'value_error',
            },
          ],
        },
      ]);
    },
  );

  test('a parameter metadata without a key, also together with one with a key', async ({ api, partner }) => {
    for (const query of ['metadata=x', 'metadata=x&metadata[a]=1', 'metadata[a]=1&metadata=x'])
      expect(outcome(await api.call(partner, 'GET', `/v1/recipients?${query}`))).toContainEqual(
        expect.arrayContaining([['query.metadata', 'dict_type']]),
      );
  });

  test('positions in lists as numbers, and names as strings', async ({ post }) => {
    const answer = await post(recipientBody({ metadata: { 0: 1 } }));
    expect(jsonOf(answer).detail).toEqual([
      { loc: ['body', 'metadata', '0'], msg: 'Input should be a valid string', type: 'string_type' },
    ]);
  });

  test('an unknown field with at most 64 characters of its name, well-formed', async ({ post }) => {
    const [long, broken] = await Promise.all([
      post(recipientBody({ ['k'.repeat(200)]: 1 })),
      post(recipientBody({ [`${'k'.repeat(63)}🏝`]: 1, '\ud800': 1 })),
    ]);
    expect(jsonOf(long).detail).toEqual([
      { loc: ['body', 'k'.repeat(64)], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' },
    ]);
    for (const { loc } of jsonOf(broken).detail) expect(loc[1].isWellFormed()).toBe(true);
  });
});

// attack/hostile-value.test.ts shows that no refusal repeats what was sent.
describe('no answer contains', () => {
  test('the cause of an internal error', async ({ newApi }) => {
    const broken = await newApi();
    const owner = await broken.createCaller('full');
    await broken.owner.pool.query('ALTER TABLE recipients RENAME TO away');
    const answer = await broken.call(owner, 'POST', '/v1/recipients', recipientBody({ name: CANARY }));
    expect(answer.statusCode).toBe(500);
    expect(new Set(Object.keys(jsonOf(answer)))).toEqual(
      new Set(['type', 'title', 'status', 'detail', 'instance', 'code', 'request_id']),
    );
    expect(answer.body).not.toMatch(/CANARY|relation|select|insert|\.ts|at /i);
  });
});
