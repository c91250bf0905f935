/**
 * Bodies are closed: what a caller may not set cannot be set by naming it, at any depth of any operation's body, and a
 * request that tries writes nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../db/id.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { createTestApi, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import { type DescribedOperation, describedOperations, placesIn } from './document.ts';
import { bodyOf, bodyWith, headersOf, urlOf } from './sample.ts';
import { type Attack, createAttack, type Tenant } from './world.ts';

/** Fields of stored objects, none of which a caller sets where the operation does not name it. */
const INTERNAL = [
  'status',
  'settlement_id',
  'is_active',
  'scope',
  'created_at',
  'updated_at',
  'verification_status',
  'kind',
  'version',
  'environment',
  'constructor',
  'prototype',
  'toString',
];

let api: TestApi;
let attack: Attack;
let tenant: Tenant;
let untouched: Record<string, string>;

beforeAll(async () => {
  api = await createTestApi();
  attack = createAttack(api);
  tenant = await attack.createTenant();
  untouched = await digestTables(api.connection.pool);
});
afterAll(() => api.close());

const withBody = describedOperations(await describeApi()).filter(
  ({ body, access }) => body && access.auth !== 'signature',
);

const idsOf = ({ access }: DescribedOperation) => (access.auth === 'session' ? tenant.consumerIds : tenant.partnerIds);

describe.each(withBody.map((operation) => [operation.name, operation] as const))('%s', (_name, operation) => {
  const send = (body: unknown) =>
    attack.send(operation, tenant, { url: urlOf(operation, idsOf(operation)), body, headers: headersOf(operation) });

  test('422 extra_forbidden naming the field, and nothing else, for every field that is not its own, and nothing is written', async () => {
    const objects = placesIn(operation.body ?? {}).filter(({ schema }) => schema.properties !== undefined);
    for (const { at, schema } of objects) {
      for (const field of INTERNAL.filter((candidate) => !Object.hasOwn(schema.properties ?? {}, candidate))) {
        const answer = await send(bodyWith(operation, [...at, field], 'settled', idsOf(operation)));
        expect([field, answer.statusCode, JSON.parse(answer.body)]).toEqual([
          field,
          422,
          { detail: [{ loc: ['body', ...at, field], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' }] },
        ]);
      }
    }
    expect(await digestTables(api.connection.pool)).toEqual(untouched);
  });

  test('422 for a name that reaches for the prototype, however it is spelled, and nothing is written', async () => {
    const objects = placesIn(operation.body ?? {}).filter(({ schema }) => schema.properties !== undefined);
    for (const { at } of objects) {
      for (const spelling of ['__proto__', '\\u005f_proto__', '__prot\\u006f__']) {
        const source = JSON.stringify(
          bodyWith(operation, [...at, 'placeholder'], { isAdmin: true }, idsOf(operation)),
        ).replace('"placeholder"', `"${spelling}"`);
        const answer = await send(source);
        expect([answer.statusCode, JSON.parse(answer.body).detail]).toEqual([
          422,
          [expect.objectContaining({ type: 'json_invalid' })],
        ]);
      }
    }
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(await digestTables(api.connection.pool)).toEqual(untouched);
  });

  test("403 organization_mismatch, or 422, for another organization's org_id, and nothing is written", async () => {
    const answer = await send(bodyWith(operation, ['org_id'], newId(), idsOf(operation)));
    const isPartner = operation.access.auth === 'api_key';
    expect([answer.statusCode, JSON.parse(answer.body)]).toEqual(
      isPartner
        ? [403, expect.objectContaining({ code: 'organization_mismatch' })]
        : [422, { detail: [expect.objectContaining({ loc: ['body', 'org_id'], type: 'extra_forbidden' })] }],
    );
    expect(await digestTables(api.connection.pool)).toEqual(untouched);
  });
});

test('the same bodies without the extra field are accepted, so that it is the field alone that is refused', async () => {
  const refused: [string, unknown][] = [];
  for (const operation of withBody) {
    const answer = await attack.send(operation, tenant, {
      url: urlOf(operation, idsOf(operation)),
      body: bodyOf(operation, idsOf(operation)),
      headers: headersOf(operation),
    });
    if (answer.statusCode === 422) refused.push([operation.name, JSON.parse(answer.body)]);
  }
  expect(refused).toEqual([]);
});
