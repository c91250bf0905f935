/**
 * Values that break parsers, in every place of every request: the answer is a documented refusal that does not repeat
 * the value, or the value is stored exactly as given. Never a 5xx. The places are those of the OpenAPI document.
 */
import { describe, expect } from 'vitest';
import { AMOUNT_PATTERN } from '../../api/schemas/common.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import type { SeenAnswer } from '../support/conformance.ts';
import { type DescribedOperation, describedOperations, placesIn, type Schema } from './document.ts';
import { withAttack } from './fixture.ts';
import { bodyOf, bodyWith, headersOf, urlOf } from './sample.ts';
import { AMOUNTS, BODIES, HEADER_VALUES, KINDS, MARK, MEDIA_TYPES, QUERIES, TEXTS } from './torture.ts';
import { idsOf, type Tenant } from './world.ts';

const OPERATIONS = describedOperations(await describeApi());
const WITH_BODY = OPERATIONS.filter(({ body }) => body !== undefined);
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

const isMoney = (schema: Schema): boolean => schema.pattern === AMOUNT_PATTERN;
const isText = ({ type }: Schema): boolean => type === 'string';

test('eight operations take an amount', () => {
  const takeMoney = WITH_BODY.filter(({ body }) => placesIn(body ?? {}).some(({ schema }) => isMoney(schema)));
  expect(takeMoney).toHaveLength(8);
});

describe.each(named(WITH_BODY))('%s', (_name, operation) => {
  const leaves = placesIn(operation.body ?? {}).filter(({ schema }) => schema.properties === undefined);

  test('every text field refuses a value or keeps it exactly', async ({ tenant, send }) => {
    for (const { at, schema } of leaves.filter((leaf) => isText(leaf.schema) && leaf.at.length > 0)) {
      await Promise.all(
        TEXTS.map(async ([what, value]) => {
          const context = `${at.join('.')}: ${what}`;
          const answer = await send(operation, bodyWith(operation, at, value, idsOf(tenant, operation)));
          requireSilence(context, answer);
          if (schema.enum) expect([context, answer.statusCode]).toEqual([context, 422]);
          if (answer.statusCode < 300 && answer.body !== '') {
            const kept = at.reduce<unknown>((holder, key) => Object(holder)[key], JSON.parse(answer.body));
            if (typeof kept === 'string') expect([context, kept]).toEqual([context, value]);
          }
        }),
      );
    }
  });

  test('422 on the field for every invalid amount', async ({ tenant, send }) => {
    for (const { at } of leaves.filter(({ schema }) => isMoney(schema))) {
      for (const [what, value] of AMOUNTS) {
        const answer = await send(operation, bodyWith(operation, at, value, idsOf(tenant, operation)));
        requireSilence(what, answer);
        expect([what, answer.statusCode, JSON.parse(answer.body).detail?.[0]?.loc]).toEqual([
          what,
          422,
          ['body', ...at],
        ]);
      }
    }
  });

  test('422 for a value of another type in every place, if the place does not allow it', async ({ tenant, send }) => {
    for (const { at } of placesIn(operation.body ?? {})) {
      for (const [what, source] of KINDS) {
        const context = `${at.join('.')}: ${what}`;
        const body = JSON.stringify(bodyWith(operation, at, '\u0001', idsOf(tenant, operation))).replace(
          '"\\u0001"',
          source,
        );
        const answer = await send(operation, body);
        requireSilence(context, answer);
        if (answer.statusCode === 422) requireLocated(context, answer, at);
      }
    }
  });

  test('422 for every body that is not a valid JSON object', async ({ send }) => {
    for (const [what, bytes] of BODIES) {
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

function requireLocated(context: string, answer: SeenAnswer, at: readonly (string | number)[]): void {
  const { detail } = JSON.parse(answer.body);
  expect([
    context,
    detail.some(
      ({ loc }: { loc: unknown[] }) => loc[0] === 'body' && (at.length === 0 || loc.length === 1 || loc[1] === at[0]),
    ),
  ]).toEqual([context, true]);
}

describe.each(named(OPERATIONS.filter(({ method, access }) => method !== 'GET' && access.auth !== 'signature')))(
  '%s',
  (_name, operation) => {
    const body = (tenant: Tenant) => Buffer.from(JSON.stringify(bodyOf(operation, idsOf(tenant, operation)) ?? {}));

    test('415 for every media type but JSON in UTF-8, and without a media type', async ({
      api,
      attack,
      tenant,
      send,
    }) => {
      for (const type of MEDIA_TYPES)
        expect([type, (await send(operation, body(tenant), { 'content-type': type })).statusCode]).toEqual([type, 415]);
      const untyped = await api.app.inject({
        method: operation.method,
        url: urlOf(operation, idsOf(tenant, operation)),
        headers: { ...attack.credentialOf(operation, tenant), ...headersOf(operation) },
        payload: body(tenant),
      });
      expect(untyped.statusCode).toBe(415);
    });

    test('415 for every Content-Encoding', async ({ tenant, send }) => {
      for (const encoding of ['gzip', 'br', 'identity', 'gzip, gzip', '']) {
        const answer = await send(operation, body(tenant), { 'content-encoding': encoding });
        expect([encoding, answer.statusCode]).toEqual([encoding, 415]);
      }
    });

    test('422 for JSON in every spelling of its media type', async ({ send }) => {
      for (const type of ['APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json;charset="UTF-8"']) {
        expect([type, (await send(operation, Buffer.from('{'), { 'content-type': type })).statusCode]).toEqual([
          type,
          422,
        ]);
      }
    });

    test('413 for a body over the limit, 422 for one at the limit', async ({ send }) => {
      expect((await send(operation, Buffer.alloc(64 * 1024 + 1, ' '))).statusCode).toBe(413);
      expect((await send(operation, Buffer.alloc(64 * 1024, '['))).statusCode).toBe(422);
    });
  },
);

describe.each(named(OPERATIONS.filter(({ parameters }) => parameters.some(({ in: place }) => place === 'header'))))(
  '%s',
  (_name, operation) => {
    test('a documented answer for every value of its headers, which it does not repeat', async ({ tenant, send }) => {
      for (const { name } of operation.parameters.filter(({ in: place }) => place === 'header')) {
        for (const [what, value] of HEADER_VALUES) {
          const answer = await send(operation, bodyOf(operation, idsOf(tenant, operation)), {
            [name.toLowerCase()]: value,
          });
          requireSilence(`${name}: ${what}`, answer);
          if (name === 'Idempotency-Key')
            expect([what, answer.statusCode, JSON.parse(answer.body).detail?.[0]?.loc]).toEqual([
              what,
              422,
              ['header', name],
            ]);
        }
      }
    });
  },
);

describe.each(named(OPERATIONS))('%s', (_name, operation) => {
  const isPaged = operation.parameters.some(({ name }) => name === 'limit');

  test(isPaged ? '422 for every invalid page' : 'a documented answer for every query', async ({ attack, tenant }) => {
    const url = urlOf(operation, idsOf(tenant, operation));
    for (const [what, query] of QUERIES) {
      const answer = await attack.send(operation, tenant, {
        url: `${url}${url.includes('?') ? '&' : '?'}${query}`,
        ...(operation.method === 'GET' ? {} : { body: '{' }),
        headers: headersOf(operation),
      });
      requireSilence(what, answer);
      if (isPaged) expect([what, answer.statusCode]).toEqual([what, 422]);
    }
  });
});
