/**
 * The operations of the OpenAPI document, and valid values made of the document's own examples. A new operation in the
 * document is part of every attack.
 */
import { z } from 'zod';
import type { Operation } from '../../api/plugins/operation-list.ts';
import type { RouteConfig } from '../../api/route-config.ts';

export type Schema = {
  readonly type?: unknown;
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly example?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly propertyNames?: Schema;
};

const SchemaObject: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    $ref: z.string().optional(),
    anyOf: z.array(SchemaObject).optional(),
    allOf: z.array(SchemaObject).optional(),
    properties: z.record(z.string(), SchemaObject).optional(),
    required: z.array(z.string()).optional(),
    items: SchemaObject.optional(),
    additionalProperties: z.unknown().optional(),
    enum: z.array(z.unknown()).optional(),
    example: z.unknown().optional(),
    format: z.string().optional(),
    pattern: z.string().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
    maxProperties: z.number().optional(),
    propertyNames: SchemaObject.optional(),
  }),
) as z.ZodType<Schema>;

const Parameter = z.looseObject({
  in: z.string(),
  name: z.string(),
  required: z.boolean().default(false),
  schema: SchemaObject,
});
export type Parameter = z.infer<typeof Parameter>;

const Reference = z.strictObject({ $ref: z.string() });

const Described = z.looseObject({
  parameters: z.array(z.union([Reference, Parameter])).default([]),
  requestBody: z
    .looseObject({
      required: z.boolean().default(false),
      content: z.record(z.string(), z.looseObject({ schema: SchemaObject })),
    })
    .optional(),
});
const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Described)),
  components: z.looseObject({
    schemas: z.record(z.string(), SchemaObject),
    parameters: z.record(z.string(), Parameter),
  }),
});

export type DescribedOperation = {
  /** `POST /v2/settle`. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly access: RouteConfig;
  readonly parameters: readonly Parameter[];
  /** The schema of the JSON body, with references resolved. Undefined if the operation takes none. */
  readonly body: Schema | undefined;
  readonly bodyRequired: boolean;
};

const Method = z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** Every operation of the document, in its order. */
export function describedOperations(described: {
  readonly document: unknown;
  readonly operations: readonly Operation[];
}): DescribedOperation[] {
  const { paths, components } = Document.parse(described.document);
  const parameterOf = (given: z.infer<typeof Reference> | Parameter): Parameter => {
    if (!('$ref' in given)) return Parameter.parse(given);
    const parameter = components.parameters[String(given.$ref).replace('#/components/parameters/', '')];
    if (!parameter) throw new Error(`${String(given.$ref)} is not in the document`);
    return parameter;
  };
  const resolve = (schema: Schema): Schema => {
    const { $ref, ...own } = schema;
    const target = $ref === undefined ? undefined : components.schemas[$ref.replace('#/components/schemas/', '')];
    const merged = target === undefined ? schema : { ...resolve(target), ...own };
    return {
      ...merged,
      ...(merged.anyOf && { anyOf: merged.anyOf.map(resolve) }),
      ...(merged.items && { items: resolve(merged.items) }),
      ...(merged.properties && {
        properties: Object.fromEntries(
          Object.entries(merged.properties).map(([name, property]) => [name, resolve(property)]),
        ),
      }),
    };
  };
  return described.operations
    .filter(({ schema }) => schema.hide !== true)
    .map(({ method, path, access }) => {
      const operation = paths[path]?.[method.toLowerCase()];
      if (!operation) throw new Error(`${method} ${path} is not in the document`);
      const schema = operation.requestBody?.content['application/json']?.schema;
      return {
        name: `${method} ${path}`,
        method: Method.parse(method),
        path,
        access,
        parameters: operation.parameters
          .map(parameterOf)
          // A credential, which each attack sends as it needs it.
          .filter(({ name }) => name !== 'authorization')
          .map((given) => ({ ...given, schema: resolve(given.schema) })),
        body: schema && bare(resolve(schema)),
        bodyRequired: operation.requestBody?.required === true,
      };
    });
}

/** A nullable schema without null. */
export function bare(schema: Schema): Schema {
  const given = schema.anyOf?.find((option) => option.type !== 'null');
  return given ? bare({ ...given, ...(schema.example === undefined ? {} : { example: schema.example }) }) : schema;
}

/** A valid value: the schema's example if it has one. `known` has values of fields by name. */
export function sampleOf(
  schema: Schema,
  known: Readonly<Record<string, unknown>>,
  wanted: readonly string[] = [],
): unknown {
  const bared = bare(schema);
  const { type, properties, required = [], items } = bared;
  if (type === 'object' && properties) {
    const names = Object.keys(properties).filter((name) => required.includes(name) || wanted.includes(name));
    return Object.fromEntries(names.map((name) => [name, known[name] ?? sampleOf(properties[name] ?? {}, known)]));
  }
  if (bared.example !== undefined) return bared.example;
  if (bared.const !== undefined) return bared.const;
  if (bared.enum) return bared.enum[0];
  if (type === 'array' && items) return [sampleOf(items, known)];
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return bared.minimum ?? 1;
  if (type === 'string') return 'x';
  return {};
}

/** Every place in a body schema, the outermost object first: `[]`, `['bank_details']`, `['signers', 0, 'label']`. */
export function placesIn(
  schema: Schema,
  at: readonly (string | number)[] = [],
): { readonly at: readonly (string | number)[]; readonly schema: Schema }[] {
  const bared = bare(schema);
  const below = Object.entries(bared.properties ?? {}).flatMap(([name, property]) => placesIn(property, [...at, name]));
  return [{ at, schema: bared }, ...below, ...(bared.items ? placesIn(bared.items, [...at, 0]) : [])];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * A copy of the body with another value at this place. `fill` makes the missing objects on the way.
 */
export function withValue(
  body: unknown,
  at: readonly (string | number)[],
  value: unknown,
  fill: (at: readonly (string | number)[]) => unknown,
): unknown {
  const set = (current: unknown, depth: number): unknown => {
    const key = at[depth];
    if (key === undefined) return value;
    const holder = current ?? fill(at.slice(0, depth));
    if (Array.isArray(holder))
      return holder.map((item: unknown, index) => (index === key ? set(item, depth + 1) : item));
    const record = isRecord(holder) ? holder : {};
    return { ...record, [key]: set(record[key], depth + 1) };
  };
  return set(body, 0);
}
