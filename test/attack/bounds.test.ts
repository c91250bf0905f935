/**
 * The bounds of every field of every request (contract §1, §2): what is just outside is 422 at its field, what just
 * fits is not, and nothing is written. The fields and the bounds are those of the OpenAPI document.
 */
import { describe, expect } from 'vitest';
import { queryText } from '../../clients/typescript/transport.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { digestTables } from '../support/database.ts';
import { FILE } from '../support/fixture.ts';
import { type Bound, type Field, fieldsOf, type Place, roundsOf } from './bounds.ts';
import { type DescribedOperation, describedOperations, placesIn, sampleOf, withValue } from './document.ts';
import { withAttack } from './fixture.ts';
import { bodyOf, type Ids, urlOf } from './sample.ts';
import { idsOf } from './world.ts';

const OPERATIONS = describedOperations(await describeApi())
  .map((operation) => ({ operation, fields: fieldsOf(operation) }))
  .filter(({ fields }) => fields.length > 0);

type Fault = { readonly loc: readonly unknown[]; readonly type: string; readonly msg: string };
/** The faults at the field of a bound, of the value that fits and of the one that does not. */
type Outcome = { readonly inside: readonly Fault[]; readonly outside: readonly Fault[] };
type Tested = {
  readonly outcomes: ReadonlyMap<Bound, Outcome>;
  /** Of the database afterwards. */
  readonly digests: Readonly<Record<string, string>>;
};

/** A request in parts: each place of a bound begins with one of them. */
type Parts = {
  readonly path: Ids;
  readonly query: Readonly<Record<string, unknown>>;
  readonly header: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
};

/** A valid request. Without `own` ids its objects do not exist. */
const partsOf = (operation: DescribedOperation, ids: Ids, own: boolean): Parts => ({
  path: own ? ids : {},
  query: Object.fromEntries(
    operation.parameters
      .filter(({ in: part, required }) => part === 'query' && required)
      .map(({ name, schema }) => [name, ids[name] ?? sampleOf(schema, ids)]),
  ),
  header: Object.fromEntries(
    operation.parameters
      .filter(({ name, required }) => name === 'Idempotency-Key' && required)
      .map(({ name, schema }) => [name, sampleOf(schema, {})]),
  ),
  body: bodyOf(operation, ids),
});

/** The request with other values at these places. What is missing on the way is made of the document's examples. */
function withValues(
  operation: DescribedOperation,
  parts: Parts,
  values: readonly (readonly [Place, unknown])[],
): Parts {
  const schemaAt = ([part, ...at]: readonly (string | number)[]) => {
    const root = part === 'body' ? operation.body : operation.parameters.find(({ name }) => name === at[0])?.schema;
    const below = part === 'body' ? at : at.slice(1);
    return placesIn(root ?? {}).find((candidate) => candidate.at.join() === below.join())?.schema ?? {};
  };
  return values.reduce<Parts>(
    (request, [place, value]) =>
      withValue(request, place, value, (missing) => sampleOf(schemaAt(missing), {})) as Parts,
    parts,
  );
}

/** One more fault, so that a request of values that fit writes nothing. */
function spoil(operation: DescribedOperation, round: readonly Bound[]): (readonly [Place, unknown])[] {
  if (operation.body === undefined) return [];
  if (operation.body.additionalProperties === false) return [[['body', 'spoiled'], 1]];
  const other = operation.body.required?.find((name) => round.every(({ at }) => at[1] !== name));
  return [[['body', other ?? expect.fail(`${operation.name} cannot be spoiled`)], 1]];
}

/** `examine`: sends the values of all bounds of an operation, once. */
const test = withAttack().extend('examine', FILE, async ({ api, attack, tenant }) => {
  const digests = await digestTables(api.connection.pool);
  const send = async (
    operation: DescribedOperation,
    { path, query, header, body }: Parts,
    mustFail: boolean,
  ): Promise<Fault[]> => {
    const address = urlOf({ ...operation, parameters: [] }, path);
    const answer = await attack.send(operation, tenant, {
      url: `${address}${queryText(query)}`,
      body,
      headers: JSON.parse(JSON.stringify(header)),
    });
    expect([operation.name, answer.statusCode, answer.body]).toEqual([
      operation.name,
      expect.toBeOneOf(mustFail ? [422] : [200, 404, 422]),
      answer.body,
    ]);
    return answer.statusCode === 422 ? JSON.parse(answer.body).detail : [];
  };
  const examine = async (operation: DescribedOperation, fields: readonly Field[]): Promise<Tested> => {
    const ids = idsOf(tenant, operation);
    const bounds = fields.flatMap((field) => field.bounds);
    const outcomes = new Map<Bound, Outcome>(bounds.map((bound) => [bound, { inside: [], outside: [] }]));
    const test = async (round: readonly Bound[], value: 'inside' | 'outside', parts: Parts, mustFail = true) => {
      const values = round.map((bound) => [bound.place, bound[value]] as const);
      const faults = await send(operation, withValues(operation, parts, values), mustFail);
      for (const bound of round) {
        const own = faults.filter(({ loc }) => loc.join('\0') === bound.at.join('\0'));
        outcomes.set(bound, { inside: [], outside: [], ...outcomes.get(bound), [value]: own });
      }
    };
    for (const round of roundsOf(bounds)) await test(round, 'outside', partsOf(operation, ids, true));
    const fitting = bounds.filter(({ inside }) => inside !== undefined);
    const isOpen = operation.body?.additionalProperties !== false;
    // The objects of these requests do not exist: their faults are answered before that.
    for (const round of isOpen ? fitting.map((bound) => [bound]) : roundsOf(fitting)) {
      const spoiled = withValues(operation, partsOf(operation, ids, false), spoil(operation, round));
      await test(round, 'inside', spoiled, operation.body !== undefined);
    }
    return { outcomes, digests: await digestTables(api.connection.pool) };
  };
  const known = new Map<DescribedOperation, Promise<Tested>>();
  return async (operation: DescribedOperation, fields: readonly Field[]) => {
    const tested = known.get(operation) ?? examine(operation, fields);
    known.set(operation, tested);
    return { ...(await tested), digestsBefore: digests };
  };
});

describe.each(OPERATIONS.map((one) => [one.operation.name, one] as const))('%s', (_name, { operation, fields }) => {
  test.for(fields.map((field) => [titleOf(field), field] as const))(
    '422 outside of %s',
    async ([, field], { examine }) => {
      const { outcomes } = await examine(operation, fields);
      for (const bound of field.bounds) {
        const { inside, outside } = outcomes.get(bound) ?? expect.fail('was not sent');
        const [fault, ...more] = outside;
        expect([bound.rule, fault?.type, more]).toEqual([bound.rule, expect.toBeOneOf([...bound.types]), []]);
        expect([bound.rule, inside.filter(({ msg }) => msg === fault?.msg)]).toEqual([bound.rule, []]);
      }
    },
  );

  test('writes nothing at a request outside of its bounds', async ({ examine }) => {
    const { digests, digestsBefore } = await examine(operation, fields);
    expect(digests).toEqual(digestsBefore);
  });
});

function titleOf({ place, bounds }: Field): string {
  return `${place.join('.')}: ${bounds.map(({ rule }) => rule).join(', ')}`;
}

test('the document has fields of every part of a request', () => {
  const parts = OPERATIONS.flatMap(({ fields }) => fields.map(({ place }) => place[0]));
  const count = (part: string) => parts.filter((one) => one === part).length;
  expect(['path', 'query', 'header', 'body'].map((part) => count(part) > 10)).toEqual([true, true, true, true]);
});
