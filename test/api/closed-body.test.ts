/** Bodies (contract §1): null is the same as absent where a field is optional, and bodies are closed everywhere. */
import { describe, expect } from 'vitest';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { describedOperations } from '../attack/document.ts';
import { withAttack } from '../attack/fixture.ts';
import { bodyOf, headersOf, urlOf } from '../attack/sample.ts';
import { idsOf } from '../attack/world.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';

const test = withAttack();
const OPERATIONS = describedOperations(await describeApi());
const BODILESS = OPERATIONS.filter(
  ({ method, body, access }) => method !== 'GET' && body === undefined && access.auth !== 'signature',
);

describe('null for every optional field is accepted', () => {
  test.for([
    ['/v2/settle', { purpose: null, reference: null, metadata: null, banklink_account_token: null }, 202],
    [
      '/v1/caribbean/settle',
      { payment_method: undefined, card_token: undefined, purpose: null, reference: null, metadata: null },
      201,
    ],
  ] as const)('2xx from POST %s', async ([url, nulls, status], { api, tenant }) => {
    const { partner } = tenant;
    const body = { ...settleBody(await createRecipient(api, partner)), ...nulls };
    const answer = await api.call(partner, 'POST', url, body, { 'idempotency-key': crypto.randomUUID() });
    expect(answer.statusCode, answer.body).toBe(status);
    expect(jsonOf(answer)).toMatchObject({ purpose: null, reference: null, metadata: {} });
  });
});

describe('an operation that takes no body refuses its fields, and accepts {}, and nothing of whatever type', () => {
  test.for(BODILESS)('$name', async (operation, { attack, send }) => {
    const refused = await send(operation, { surprise: 1 });
    expect([refused.statusCode, JSON.parse(refused.body)]).toEqual([
      422,
      { detail: [{ loc: ['body', 'surprise'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' }] },
    ]);
    expect((await send(operation, [])).statusCode).toBe(422);
    const others = await attack.createTenant();
    const url = urlOf(operation, idsOf(others, operation));
    const headers = headersOf(operation);
    const accepted = await attack.send(operation, others, { url, body: {}, headers });
    expect(accepted.statusCode, accepted.body).not.toBe(422);
    // A body without a byte has no type.
    const typed = { ...headers, 'content-type': 'text/plain' };
    const empty = { ...typed, 'content-length': '0' };
    const untyped = await attack.send(operation, others, { url, body: Buffer.alloc(0), headers: empty });
    expect(untyped.statusCode, untyped.body).toBeLessThan(415);
    const absent = await attack.send(operation, others, { url, headers: typed });
    expect(absent.statusCode, absent.body).toBeLessThan(415);
  });
});

describe('an unknown parameter of the query is refused, also where there are none', () => {
  const closed = OPERATIONS.filter(({ access }) => ['api_key', 'optional_api_key', 'session'].includes(access.auth));
  test.for(closed)('$name', async (operation, { attack, tenant }) => {
    const ids = idsOf(tenant, operation);
    const url = urlOf(operation, ids);
    const answer = await attack.send(operation, tenant, {
      url: `${url}${url.includes('?') ? '&' : '?'}surprise=1`,
      ...(operation.method === 'GET' ? {} : { body: bodyOf(operation, ids) ?? {} }),
      headers: headersOf(operation),
    });
    expect(answer.statusCode, answer.body).toBe(422);
    expect(JSON.parse(answer.body).detail).toContainEqual(
      expect.objectContaining({ loc: ['query', 'surprise'], type: 'extra_forbidden' }),
    );
  });
});

test('operations that take no body exist', () => expect(BODILESS.length).toBeGreaterThan(5));
