/**
 * The operations of the OpenAPI document, and valid values made of the document's own examples. A new operation in the
 * document is part of every attack.
 */
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

export type Parameter = {
  readonly in: string;
  readonly name: string;
  readonly required?: boolean;
  readonly schema: Schema;
};
type Reference = { readonly $ref: string };
type Described = {
  readonly parameters?: readonly (Reference | Parameter)[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
  };
};
/** The parts of the document that an attack needs. Its form is tested in test/contract/openapi.test.ts. */
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
};

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

/** Every operation of the document, in its order. */
export function describedOperations(described: {
  readonly document: unknown;
  readonly operations: readonly Operation[];
}): DescribedOperation[] {
  const { paths, components } = described.document as Document;
  const parameterOf = (given: Reference | Parameter): Parameter => {
    if (!('$ref' in given)) return given;
    const parameter = components.parameters[given.$ref.replace('#/components/parameters/', '')];
    if (!parameter) throw new Error(`${given.$ref} is not in the document`);
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
        method: method as DescribedOperation['method'],
        path,
        access,
        parameters: (operation.parameters ?? [])
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
