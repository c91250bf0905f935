/**
 * Values of one form that recur, as named schemas of the OpenAPI document: ids, times, amounts. A field refers to them
 * and adds its own description. Written out in every field they would be a tenth of the document.
 */
import { isDeepStrictEqual } from 'node:util';
import type { OpenAPIV3_1 } from 'openapi-types';
import type { z } from 'zod';
import { createSchema } from 'zod-openapi';
import {
  country,
  email,
  fxRate,
  id,
  MAY_GROW,
  money,
  objectId,
  phone,
  shownSettlementId,
  simulation,
  text,
  timestamp,
} from '../schemas/common.ts';
import { webhookUrl } from '../schemas/webhook.ts';
import { tidySchema } from './openapi-component.ts';

type Schema = Record<string, unknown>;
/** The name of each scalar by its form. */
type Names = ReadonlyMap<string, string>;

/** By the names that clients are generated with. */
const SCALARS: Readonly<Record<string, z.ZodType>> = {
  Amount: money('An amount in major units of its currency.'),
  CountryCode: country('A country (ISO 3166-1 alpha-2).'),
  EmailAddress: email('An e-mail address.'),
  LongText: text(1, 500).meta({ description: 'Trimmed text without control characters.' }),
  PhoneNumber: phone('A phone number (E.164).'),
  ProviderText: text(1, 255).meta({ description: "A provider's text." }),
  ShortText: text(1, 140).meta({ description: 'Trimmed text without control characters.' }),
  Timestamp: timestamp('RFC 3339, in UTC with milliseconds.'),
  Token: text(1, 1_024).meta({ description: 'Stands for a card or an account.' }),
  Uuid: id('The id of an object, as a request names it: a UUID of version 7.'),
  WebhookUrl: webhookUrl(),
};

/** Text of answers has no pattern. Only its example tells it from other text. */
const ANSWERED: Readonly<Record<string, z.ZodType>> = {
  Id: objectId('The id of an object.'),
  SettlementId: shownSettlementId('The id of a settlement.'),
};

/** Values that are told by their whole schema. */
const EXACT: Readonly<Record<string, z.ZodType>> = { FxRate: fxRate(), Simulation: simulation() };

/** Of an object that a query also takes. Its schema is a component already. */
const METADATA = 'Metadata';

const ADDED_BY_FIELDS = ['description', 'example'];
const NOT_SCHEMAS = ['example', 'examples', 'enum', 'const', 'default', 'mapping'];

/** Adds the scalars to the components, and replaces each schema of their form by a reference. */
export function shareScalars(document: OpenAPIV3_1.Document): OpenAPIV3_1.Document {
  const written = Object.entries(SCALARS).map(([name, schema]) => [name, jsonSchemaOf(schema, 'input')] as const);
  const answered = Object.entries(ANSWERED).map(([name, schema]) => [name, jsonSchemaOf(schema, 'output')] as const);
  const exact = Object.entries(EXACT).map(([name, schema]) => [name, jsonSchemaOf(schema, 'output')] as const);
  const { schemas = {}, ...others } = document.components ?? {};
  const names: Names = new Map([
    ...written.map(([name, schema]) => [formOf(schema, ADDED_BY_FIELDS), name] as const),
    ...answered.map(([name, schema]) => [formOf(schema, ['description']), name] as const),
    ...exact.map(([name, schema]) => [formOf(schema, []), name] as const),
    [formOf({ ...schemas[METADATA] }, ADDED_BY_FIELDS), METADATA],
  ]);
  const shared = {
    ...(rewritten({ paths: document.paths, others }, names) as { paths: OpenAPIV3_1.PathsObject; others: object }),
    schemas: sorted({
      ...Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withParts({ ...schema }, names)])),
      ...Object.fromEntries([...written, ...answered, ...exact]),
    }),
  };
  dropRepeated(shared, shared.schemas);
  return { ...document, paths: shared.paths, components: { ...shared.others, schemas: shared.schemas } };
}

const sorted = <Value>(record: Record<string, Value>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

const jsonSchemaOf = (schema: z.ZodType, io: 'input' | 'output'): Schema => ({
  ...createSchema(schema, { io, openapiVersion: '3.1.0', opts: { override: tidySchema } }).schema,
});

/** What tells two schemas apart. */
const formOf = (schema: Schema, without: readonly string[]): string =>
  JSON.stringify(
    Object.entries(schema)
      .filter(([name]) => !without.includes(name))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const referenceTo = (name: string): string => `#/components/schemas/${name}`;

function rewritten(value: unknown, names: Names): unknown {
  if (Array.isArray(value)) return value.map((child) => rewritten(child, names));
  if (!isObject(value)) return value;
  const name = scalarOf(value, names);
  if (name === undefined) return withParts(value, names);
  const { description, example } = value;
  return { ...(description ? { description } : {}), ...('example' in value && { example }), $ref: referenceTo(name) };
}

const withParts = (schema: Schema, names: Names): Schema =>
  Object.fromEntries(
    Object.entries(withNull(schema, names)).map(([key, child]) => [
      key,
      NOT_SCHEMAS.includes(key) ? child : rewritten(child, names),
    ]),
  );

const scalarOf = (schema: Schema, names: Names): string | undefined =>
  [ADDED_BY_FIELDS, ['description'], []]
    .map((without) => names.get(formOf(schema, without)))
    .find((name) => name !== undefined);

/** A value that can be null, with both types in one schema where that is shorter than a choice. */
function withNull(schema: Schema, names: Names): Schema {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [given, nothing] = anyOf as [Schema, Schema];
  const isPlain = given['type'] === 'string' && !('enum' in given) && scalarOf(given, names) === undefined;
  if (nothing['type'] !== 'null' || !isPlain) return schema;
  return { ...given, ...rest, type: ['string', 'null'] };
}

/**
 * Removes a description or example beside a reference that says the same as what it refers to, and the example of a
 * field that the example of its object has.
 */
function dropRepeated(value: unknown, schemas: Readonly<Record<string, unknown>>): void {
  if (Array.isArray(value)) for (const child of value) dropRepeated(child, schemas);
  if (!isObject(value)) return;
  const { $ref } = value;
  const target = typeof $ref === 'string' ? schemas[$ref.replace(referenceTo(''), '')] : undefined;
  if (isObject(target))
    for (const name of ADDED_BY_FIELDS)
      if ([value[name], `${value[name]} ${MAY_GROW}`].includes(target[name])) Reflect.deleteProperty(value, name);
  const { example, properties } = value;
  if (isObject(example) && isObject(properties))
    for (const [name, property] of Object.entries(properties))
      if (
        isObject(property) &&
        property['example'] !== undefined &&
        isDeepStrictEqual(property['example'], example[name])
      )
        Reflect.deleteProperty(property, 'example');
  for (const [key, child] of Object.entries(value)) if (!NOT_SCHEMAS.includes(key)) dropRepeated(child, schemas);
}
