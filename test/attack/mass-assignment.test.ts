/**
 * Bodies are closed: a field that an operation does not have is refused at any depth of its body, and the request
 * writes nothing.
 */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { digestTables } from '../support/database.ts';
import { FILE } from '../support/fixture.ts';
import { describedOperations, placesIn } from './document.ts';
import { withAttack } from './fixture.ts';
import { bodyOf, bodyWith, headersOf, urlOf } from './sample.ts';
import { idsOf } from './world.ts';

/** Fields of stored objects. No caller sets them, unless the operation has the field. */
const INTERNAL = [
  ...['status', 'settlement_id', 'is_active', 'scope', 'created_at', 'updated_at', 'verification_status', 'kind'],
  ...['version', 'environment', 'constructor', 'prototype', 'toString'],
];

/** `digests`: of the database once the tenant has its objects. No refused request writes to it. */
const test = withAttack().extend(
  'digests',
  FILE,
  async ({ api, tenant: _tenant }) => await digestTables(api.connection.pool),
);

const withBody = describedOperations(await describeApi()).filter(
  ({ body, access }) => body && access.auth !== 'signature',
);

describe.each(withBody.map((operation) => [operation.name, operation] as const))('%s', (_name, operation) => {
  test('422 extra_forbidden for every field that the body does not have, and nothing is written', async ({
    api,
    tenant,
    digests,
    send,
  }) => {
    const objects = placesIn(operation.body ?? {}).filter(({ schema }) => schema.properties !== undefined);
    const ids = idsOf(tenant, operation);
    for (const { at, schema } of objects) {
      const extra = INTERNAL.filter((field) => !Object.hasOwn(schema.properties ?? {}, field));
      const places = extra.map((field) => [...at, field]);
      const body = bodyWith(operation, places, 'settled', ids);
      const answer = await send(operation, body);
      const fault = { msg: 'Extra inputs are not permitted', type: 'extra_forbidden' };
      const detail = places.map((place) => ({ loc: ['body', ...place], ...fault }));
      expect(answer.statusCode).toBe(422);
      expect(new Set(JSON.parse(answer.body).detail)).toEqual(new Set(detail));
    }
    expect(await digestTables(api.connection.pool)).toEqual(digests);
  });

  test('422 for __proto__ in every spelling, and nothing is written', async ({ api, tenant, digests, send }) => {
    const objects = placesIn(operation.body ?? {}).filter(({ schema }) => schema.properties !== undefined);
    for (const { at } of objects) {
      for (const spelling of ['__proto__', '\\u005f_proto__', '__prot\\u006f__']) {
        const source = JSON.stringify(
          bodyWith(operation, [[...at, 'placeholder']], { isAdmin: true }, idsOf(tenant, operation)),
        ).replace('"placeholder"', `"${spelling}"`);
        const answer = await send(operation, source);
        expect([answer.statusCode, JSON.parse(answer.body).detail]).toEqual([
          422,
          [expect.objectContaining({ type: 'json_invalid' })],
        ]);
      }
    }
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(await digestTables(api.connection.pool)).toEqual(digests);
  });

  test("403 organization_mismatch, or 422, for another organization's org_id, and nothing is written", async ({
    api,
    tenant,
    digests,
    send,
  }) => {
    const answer = await send(operation, bodyWith(operation, [['org_id']], newId(), idsOf(tenant, operation)));
    const isPartner = operation.access.auth === 'api_key';
    expect([answer.statusCode, JSON.parse(answer.body)]).toEqual(
      isPartner
        ? [403, expect.objectContaining({ code: 'organization_mismatch' })]
        : [422, { detail: [expect.objectContaining({ loc: ['body', 'org_id'], type: 'extra_forbidden' })] }],
    );
    expect(await digestTables(api.connection.pool)).toEqual(digests);
  });
});

test('the same bodies without the extra field are accepted', async ({ attack, tenant }) => {
  const refused: [string, unknown][] = [];
  for (const operation of withBody) {
    const answer = await attack.send(operation, tenant, {
      url: urlOf(operation, idsOf(tenant, operation)),
      body: bodyOf(operation, idsOf(tenant, operation)),
      headers: headersOf(operation),
    });
    if (answer.statusCode === 422) refused.push([operation.name, JSON.parse(answer.body)]);
  }
  expect(refused).toEqual([]);
});
