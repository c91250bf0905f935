/**
 * Values that break parsers, in every place of every request: the answer is a documented refusal that does not repeat
 * the value, or the value is stored exactly as given. Never a 5xx. The places are those of the OpenAPI document.
 *
 * What is read before a request reaches its operation (the media type, the JSON, a query) is read by the same code for
 * all of them. So one operation of each kind of credential gets every such value, and the others get the first few.
 */
import { describe, expect } from 'vitest';
import { AMOUNT_PATTERN } from '../../api/schemas/common.ts';
import { EVENT_AMOUNT_PATTERN } from '../../api/schemas/test-helper.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import type { SeenAnswer } from '../support/conformance.ts';
import { type DescribedOperation, describedOperations, placesIn, type Schema } from './document.ts';
import { withAttack } from './fixture.ts';
import { AMOUNTS, BODIES, HEADER_VALUES, MARK, MEDIA_TYPES, QUERIES, TEXTS } from './hostile-value.ts';
import { bodyOf, bodyWith, headersOf, urlOf } from './sample.ts';
import { idsOf, type Tenant } from './world.ts';

const OPERATIONS = describedOperations(await describeApi());
const WITH_BODY = OPERATIONS.filter(({ body }) => body !== undefined);
/** The first operation of each kind of credential, and each that a provider calls. */
const isThorough = ({ access }: DescribedOperation, index: number, all: readonly DescribedOperation[]): boolean =>
  access.auth === 'signature' || all.findIndex((other) => other.access.auth === access.auth) === index;
const FEW = 3;
const named = (operations: readonly DescribedOperation[]) =>
  operations.map((operation) => [operation.name, operation] as const);

const test = withAttack();

/** The answer is not a 5xx, and a refusal does not repeat what was sent. */
function requireSilence(context: string, answer: SeenAnswer): void {
  expect([context, answer.statusCode < 500]).toEqual([context, true]);
  if (answer.statusCode >= 400)
    expect([context, JSON.stringify(answer.headers) + withoutAddress(answer)]).toEqual([
      context,
      expect.not.stringContaining(MARK),
    ]);
}

/** The body without the path of the request and the names of unknown fields, which a refusal may contain. */
function withoutAddress({ headers, body }: SeenAnswer): string {
  if (!String(headers['content-type']).includes('json')) return body;
  const { instance: _instance, detail, ...rest } = JSON.parse(body);
  const faults = Array.isArray(detail)
    ? detail.map(({ type, loc, ...fault }) => ({ ...fault, type, loc: type === 'extra_forbidden' ? [] : loc }))
    : detail;
  return JSON.stringify({ ...rest, faults });
}

const MONEY: readonly unknown[] = [AMOUNT_PATTERN, EVENT_AMOUNT_PATTERN];
const isMoney = ({ pattern }: Schema): boolean => MONEY.includes(pattern);
const isText = ({ type }: Schema): boolean => type === 'string';

test('eight operations take an amount', () => {
  const takeMoney = WITH_BODY.filter(({ body }) => placesIn(body ?? {}).some(({ schema }) => isMoney(schema)));
  expect(takeMoney).toHaveLength(8);
});

type At = readonly (string | number)[];

const faultsIn = (answer: SeenAnswer): string[] =>
  answer.statusCode === 422 ? JSON.parse(answer.body).detail.map(({ loc }: { loc: At }) => loc.slice(1).join()) : [];

describe.each(named(WITH_BODY))('%s', (_name, operation) => {
  const thorough = isThorough(operation, WITH_BODY.indexOf(operation), WITH_BODY);
  const leaves = placesIn(operation.body ?? {}).filter(
    ({ at, schema }) => schema.properties === undefined && at.length > 0,
  );

  test('every text field refuses a value or keeps it exactly', async ({ tenant, send }) => {
    const texts = leaves.filter(({ schema }) => isText(schema));
    /** All of these fields at once, then those of them that no fault names. If it names none, each of them alone. */
    const examine = async (fields: typeof texts, value: string): Promise<void> => {
      const places = fields.map(({ at }) => at);
      const answer = await send(operation, bodyWith(operation, places, value, idsOf(tenant, operation)));
      requireSilence(`${places.join(' ')}: ${JSON.stringify(value)}`, answer);
      const isAccepted = answer.statusCode < 300;
      if (isAccepted || fields.length === 1) {
        for (const { at, schema } of fields) {
          if (schema.enum) expect([at, answer.statusCode]).toEqual([at, 422]);
          if (!isAccepted || answer.body === '') continue;
          const kept = at.reduce<unknown>((holder, key) => Object(holder)[key], JSON.parse(answer.body));
          if (typeof kept === 'string') expect([at, kept]).toEqual([at, value]);
        }
        return;
      }
      const refused = faultsIn(answer);
      const left = fields.filter(({ at }) => !refused.includes(at.join()));
      const rest = left.length < fields.length ? [left] : fields.map((field) => [field]);
      for (const some of rest.filter(({ length }) => length > 0)) await examine(some, value);
    };
    for (const value of TEXTS) await examine(texts, value);
  });

  test('422 on the field for every invalid amount', async ({ tenant, send }) => {
    for (const { at } of leaves.filter(({ schema }) => isMoney(schema))) {
      for (const value of AMOUNTS) {
        const answer = await send(operation, bodyWith(operation, [at], value, idsOf(tenant, operation)));
        requireSilence(value, answer);
        expect([value, answer.statusCode, faultsIn(answer)[0]]).toEqual([value, 422, at.join()]);
      }
    }
  });

  test('422 for a body that is not a valid JSON object', async ({ send }) => {
    for (const [what, bytes] of thorough ? BODIES : BODIES.slice(0, FEW)) {
      const answer = await send(operation, bytes);
      requireSilence(what, answer);
      expect([what, answer.statusCode]).toEqual([what, 422]);
    }
  });

  test('422 without a body if one is required', async ({ send }) => {
    const answer = await send(operation, '');
    requireSilence('nothing', answer);
    if (operation.bodyRequired) {
      expect(JSON.parse(answer.body)).toEqual({ detail: [{ loc: ['body'], msg: 'Field required', type: 'missing' }] });
    }
  });
});

const WRITING = OPERATIONS.filter(({ method, access }) => method !== 'GET' && access.auth !== 'signature');

describe.each(named(WRITING))('%s', (_name, operation) => {
  const thorough = isThorough(operation, WRITING.indexOf(operation), WRITING);
  const body = (tenant: Tenant) => Buffer.from(JSON.stringify(bodyOf(operation, idsOf(tenant, operation)) ?? {}));

  test('415 for a media type that is not JSON in UTF-8, for none, and for any Content-Encoding', async ({
    api,
    attack,
    tenant,
    send,
  }) => {
    const types = thorough ? MEDIA_TYPES : MEDIA_TYPES.slice(0, FEW);
    const encodings = thorough ? ['gzip', 'br', 'identity', 'gzip, gzip', ''] : ['gzip'];
    for (const headers of [
      ...types.map((type) => ({ 'content-type': type })),
      ...encodings.map((encoding) => ({ 'content-encoding': encoding })),
    ]) {
      const answer = await send(operation, body(tenant), headers);
      requireSilence(JSON.stringify(headers), answer);
      expect([headers, answer.statusCode]).toEqual([headers, 415]);
    }
    const untyped = await api.app.inject({
      method: operation.method,
      url: urlOf(operation, idsOf(tenant, operation)),
      headers: { ...attack.credentialOf(operation, tenant), ...headersOf(operation) },
      payload: body(tenant),
    });
    expect(untyped.statusCode).toBe(415);
  });
});

describe.each(named(WITH_BODY.filter(isThorough)))('%s', (_name, operation) => {
  test('a byte order mark is ignored', async ({ tenant, send }) => {
    const body = bodyOf(operation, idsOf(tenant, operation));
    const [plain, marked] = [
      await send(operation, body),
      await send(operation, Buffer.from(`\ufeff${JSON.stringify(body)}`)),
    ];
    requireSilence('a byte order mark', marked);
    // The same event with other bytes is a conflict: the body was read.
    expect([plain, marked].map(({ statusCode }) => statusCode === 422)).toEqual([false, false]);
  });
});

describe.each(named(WRITING.filter(isThorough)))('%s', (_name, operation) => {
  test('422 for JSON in every spelling of its media type', async ({ send }) => {
    for (const type of ['APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"']) {
      const answer = await send(operation, Buffer.from('{'), { 'content-type': type });
      expect([type, answer.statusCode]).toEqual([type, 422]);
    }
  });

  test('413 for a body over the limit, 422 for one at the limit', async ({ send }) => {
    expect((await send(operation, Buffer.alloc(64 * 1024 + 1, ' '))).statusCode).toBe(413);
    expect((await send(operation, Buffer.alloc(64 * 1024, '['))).statusCode).toBe(422);
  });
});

const WITH_HEADERS = OPERATIONS.filter(({ parameters }) => parameters.some(({ in: place }) => place === 'header'));

describe.each(named(WITH_HEADERS))('%s', (_name, operation) => {
  const thorough = isThorough(operation, WITH_HEADERS.indexOf(operation), WITH_HEADERS);

  test('a documented answer for an invalid value of its headers, which it does not repeat', async ({
    tenant,
    send,
  }) => {
    for (const { name } of operation.parameters.filter(({ in: place }) => place === 'header')) {
      for (const value of thorough ? HEADER_VALUES : HEADER_VALUES.slice(0, FEW)) {
        const body = bodyOf(operation, idsOf(tenant, operation));
        const answer = await send(operation, body, { [name.toLowerCase()]: value });
        requireSilence(`${name}: ${value}`, answer);
        if (name === 'Idempotency-Key')
          expect([value, answer.statusCode, JSON.parse(answer.body).detail?.[0]?.loc]).toEqual([
            value,
            422,
            ['header', name],
          ]);
      }
    }
  });
});

describe.each(named(OPERATIONS))('%s', (_name, operation) => {
  const isPaged = operation.parameters.some(({ name }) => name === 'limit');
  const isFull = isPaged || isThorough(operation, OPERATIONS.indexOf(operation), OPERATIONS);

  test(isPaged ? '422 for every invalid page' : 'a documented answer for a query', async ({ attack, tenant }) => {
    const url = urlOf(operation, idsOf(tenant, operation));
    for (const query of isFull ? QUERIES : QUERIES.slice(-FEW)) {
      const answer = await attack.send(operation, tenant, {
        url: `${url}${url.includes('?') ? '&' : '?'}${query}`,
        ...(operation.method === 'GET' ? {} : { body: '{' }),
        headers: headersOf(operation),
      });
      requireSilence(query, answer);
      if (isPaged) expect([query, answer.statusCode]).toEqual([query, 422]);
    }
  });
});
