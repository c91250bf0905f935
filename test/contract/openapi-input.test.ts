/**
 * What the document allows is not refused for its form. Values are generated from the document's schemas alone and read
 * by the schemas that the operations validate with.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { faultsOfIssues } from '../../api/http/validation.ts';
import { describeApi } from '../../scripts/generate/openapi.ts';
import { type DescribedOperation, describedOperations, type Schema } from '../attack/document.ts';
import { words } from '../support/words.ts';

const RUNS = 40;

/** Types of faults about the form of one value (contract §2). JSON Schema has a word for each of these rules. */
const FORM = words(`
  missing extra_forbidden string_type bool_type list_type dict_type int_type int_parsing string_too_short
  string_too_long string_pattern_mismatch too_short too_long greater_than_equal less_than_equal enum
`);

/** Rules that JSON Schema cannot express, as a fault ends; and rules across fields, which are in the descriptions. */
const BEYOND_JSON_SCHEMA = [
  'must be trimmed Unicode NFC text without control characters',
  'must be an E.164 phone number',
  'must have a valid EIP-55 checksum, or letters of one case only',
  'must not be the zero address',
];

/** Which hosts an address may have is a rule of its own (contract §11). */
const OWN_RULES = ['url'];

/** A field is required by another one, as the descriptions say. */
const REQUIRED_BY_ANOTHER: Readonly<Record<string, readonly string[]>> = {
  'POST /v2/settle': ['card_token', 'banklink_account_token'],
  'POST /consumer/transfers': ['corridor', 'amount', 'payment_method', 'card_token', 'banklink_account_token'],
};

const described = await describeApi();
const operations = describedOperations(described).filter(({ access }) => access.auth !== 'signature');
const schemasOf = new Map(described.operations.map(({ method, path, schema }) => [`${method} ${path}`, schema]));

function generated(schema: Schema): fc.Arbitrary<unknown> {
  const { anyOf, type, properties = {}, required = [], items, additionalProperties } = schema;
  if (anyOf) return fc.oneof(...anyOf.map(generated));
  if (Array.isArray(type)) return fc.oneof(...type.map((one: unknown) => generated({ ...schema, type: one })));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (type === 'null') return fc.constant(null);
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer') return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 1_000 });
  if (type === 'array' && items)
    return fc.array(generated(items), { minLength: schema.minItems ?? 0, maxLength: schema.maxItems ?? 5 });
  if (type === 'object' && isSchema(additionalProperties))
    return fc.dictionary(textOf(schema.propertyNames ?? {}), generated(additionalProperties), {
      maxKeys: schema.maxProperties ?? 5,
      noNullPrototype: true,
    });
  if (type === 'object')
    return fc.record(
      Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, generated(property)])),
      { requiredKeys: [...required], noNullPrototype: true },
    );
  return textOf(schema);
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null;

function textOf({ format, pattern, minLength = 0, maxLength = 100 }: Schema): fc.Arbitrary<string> {
  if (format === 'date-time')
    return fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-01-01') })
      .map((date) => date.toISOString());
  // The format `email` has at most 64 characters before the `@` (RFC 5321).
  const isAddress = (text: string) => format !== 'email' || text.indexOf('@') <= 64;
  const fits = (text: string) => [...text].length >= minLength && [...text].length <= maxLength && isAddress(text);
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern), { size: 'small' }).filter(fits);
  return fc.string({ minLength, maxLength });
}

/** The faults of the form that the operation finds in this part of a request. */
function formFaults(operation: DescribedOperation, part: 'body' | 'params' | 'querystring', value: unknown): string[] {
  const schema: unknown = schemasOf.get(operation.name)?.[part];
  if (!(schema instanceof z.ZodType)) throw new Error(`${operation.name} has no schema for its ${part}`);
  const read = schema.safeParse(value, { reportInput: true });
  return faultsOfIssues(read.error?.issues ?? [], part)
    .filter(({ loc, type }) => !(type === 'missing' && REQUIRED_BY_ANOTHER[operation.name]?.includes(String(loc[1]))))
    .filter(({ loc, type, msg }) => FORM.includes(type) || (!OWN_RULES.includes(String(loc[1])) && isUnexplained(msg)))
    .map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
}

/** A fault of one text value that is neither a rule across fields nor beyond JSON Schema. */
const isUnexplained = (msg: string): boolean =>
  /must be an? (e-mail|ISO|RFC 3339|E\.164)|must name|must be trimmed/.test(msg) &&
  !BEYOND_JSON_SCHEMA.some((rule) => msg.endsWith(rule));

const parametersIn = ({ parameters }: DescribedOperation, place: string): Schema => ({
  type: 'object',
  properties: Object.fromEntries(
    parameters.filter((parameter) => parameter.in === place).map(({ name, schema }) => [name, schema]),
  ),
  required: parameters.filter((parameter) => parameter.in === place && parameter.required).map(({ name }) => name),
});

/** As a query has it: every value is text, and a list of one value is that value. */
const asQuery = (value: unknown): unknown =>
  Object.fromEntries(
    Object.entries(isSchema(value) ? value : {}).map(([name, given]: [string, unknown]) => [
      name,
      typeof given === 'object' ? given : String(given),
    ]),
  );

test.each(['P3D', 'P1W', 'P1W2D', 'PT1H', 'PT1H30M', 'PT90M', 'PT0.5S', 'P1DT12H'])(
  'the document allows the duration %s',
  (duration) => {
    const advance = operations.find(({ path }) => path.endsWith('/advance'));
    const [given] = advance?.body?.properties?.['by']?.anyOf ?? [];
    expect(duration).toMatch(new RegExp(given?.pattern ?? '^$'));
  },
);

test('the document allows no header that HTTP does not allow', () => {
  const texts = describedOperations(described).flatMap(({ name, parameters }) =>
    parameters.filter((parameter) => parameter.in === 'header').map((header) => [name, header] as const),
  );
  expect(texts.length).toBeGreaterThan(10);
  const open = texts.filter(([, { schema }]) =>
    ['\x05', 'a\n', '\x7f'].some((text) => new RegExp(schema.pattern ?? '').test(text)),
  );
  expect(open.map(([name, header]) => `${name} ${header.name}`)).toEqual([]);
});

describe('what the document allows is not refused for its form', () => {
  const withBody = operations.flatMap((operation) => (operation.body ? [[operation.name, operation] as const] : []));
  test.each(withBody)('no 422 for the body of %s', (_name, operation) => {
    fc.assert(
      fc.property(generated(operation.body ?? {}), (value) => {
        expect(formFaults(operation, 'body', value)).toEqual([]);
      }),
      { numRuns: RUNS, seed: 1 },
    );
  });

  const withPath = operations
    .filter(({ path }) => path.includes('{'))
    .map((operation) => [operation.name, operation] as const);
  test.each(withPath)('no 422 for the path of %s', (_name, operation) => {
    fc.assert(
      fc.property(generated(parametersIn(operation, 'path')), (value) => {
        expect(formFaults(operation, 'params', value)).toEqual([]);
      }),
      { numRuns: RUNS, seed: 1 },
    );
  });

  const withQuery = operations
    .filter(({ parameters }) => parameters.some((parameter) => parameter.in === 'query'))
    .map((operation) => [operation.name, operation] as const);
  test.each(withQuery)('no 422 for the query of %s', (_name, operation) => {
    const { properties = {}, ...rest } = parametersIn(operation, 'query');
    // No generator can make a cursor: it is opaque.
    const { after: _after, ...others } = properties;
    fc.assert(
      fc.property(generated({ ...rest, properties: others }).map(asQuery), (value) => {
        expect(formFaults(operation, 'querystring', value)).toEqual([]);
      }),
      { numRuns: RUNS, seed: 1 },
    );
  });
});
