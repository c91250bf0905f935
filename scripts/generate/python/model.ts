/**
 * `models.py`: a TypedDict for every object of the document, and a name for every enum that has one. An object inside
 * of another gets the name of its field; no name is numbered.
 */
import { jsonSchemaOf, type OpenApi, operationsOf, referencedName, type Schema } from './document.ts';
import { docstring, HEADER, LINE_LENGTH_MAX, pascalCase, pythonLiteral } from './text.ts';

/** Whether a schema stands in a request: there, a caller may give more types than an answer has. */
type Side = 'request' | 'answer';

type Definitions = { readonly classes: Map<string, string>; readonly aliases: Map<string, string> };

const INDENT = '    ';
export const KEYWORDS = new Set([
  'from',
  'class',
  'import',
  'global',
  'in',
  'is',
  'as',
  'async',
  'await',
  'pass',
  'return',
]);

/** @throws Error when two objects would get one name, or a field has a name that Python does not allow */
export function pythonModels(document: OpenApi): string {
  const { schemas } = document.components;
  const requested = requestSchemas(document);
  const definitions: Definitions = { classes: new Map(), aliases: new Map() };
  for (const name of inOrder(schemas))
    define(definitions, { name, schema: schemas[name] ?? {}, side: requested.has(name) ? 'request' : 'answer' });
  const { classes, aliases } = definitions;
  return [
    HEADER,
    '',
    'from __future__ import annotations',
    '',
    'from collections.abc import Mapping, Sequence',
    'from datetime import datetime',
    'from typing import Any, Literal, Union',
    '',
    'from typing_extensions import NotRequired, TypedDict',
    '',
    '#: A moment with its time zone, or RFC 3339 text.',
    'Timestamp = Union[datetime, str]',
    ...[...aliases.values()].filter(isLiteral),
    ...classes.values(),
    '',
    '',
    ...[...aliases.values()].filter((alias) => !isLiteral(alias)),
    '',
  ].join('\n');
}

/** The names, each after those of the objects that it adds fields to: Python reads a class's bases at once. */
function inOrder(schemas: OpenApi['components']['schemas']): Set<string> {
  const ordered = new Set<string>();
  const visit = (name: string): void => {
    for (const base of basesOf(schemas[name] ?? {})) if (!ordered.has(base)) visit(base);
    ordered.add(name);
  };
  for (const name of Object.keys(schemas)) visit(name);
  return ordered;
}

const basesOf = ({ allOf = [] }: Schema): string[] =>
  allOf.flatMap(({ $ref }) => ($ref === undefined ? [] : [referencedName($ref)]));

/** The named schemas that only requests contain, at any depth. */
function requestSchemas(document: OpenApi): Set<string> {
  const operations = operationsOf(document).map(({ operation }) => operation);
  const asked = operations.map(({ requestBody }) => jsonSchemaOf(requestBody?.content));
  const answered = operations.flatMap(({ responses }) => [
    ...Object.values(responses).map(({ content }) => jsonSchemaOf(content)),
    ...Object.values(document.components.responses ?? {}).map(({ content }) => jsonSchemaOf(content)),
  ]);
  const inAnswers = reachable(document, answered);
  return new Set([...reachable(document, asked)].filter((name) => !inAnswers.has(name)));
}

function reachable({ components }: OpenApi, roots: readonly (Schema | undefined)[]): Set<string> {
  const found = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('$ref' in value && typeof value.$ref === 'string') {
      const name = referencedName(value.$ref);
      if (!found.has(name)) {
        found.add(name);
        visit(components.schemas[name]);
      }
    }
    for (const part of Object.values(value)) visit(part);
  };
  for (const root of roots) visit(root);
  return found;
}

type Named = { readonly name: string; readonly schema: Schema; readonly side: Side };

function define(definitions: Definitions, named: Named): void {
  const { name, schema } = named;
  if (definitions.classes.has(name) || definitions.aliases.has(name)) throw new Error(`Two schemas are named ${name}.`);
  if (isObject(schema)) defineClass(definitions, named);
  else defineAlias(definitions, named);
}

function defineAlias(definitions: Definitions, named: Named): void {
  const { name, schema } = named;
  definitions.aliases.set(name, '');
  // Python reads an alias at once, and a class that stands further below only by its name.
  const written = typeOf(definitions, named);
  const type = written.includes(' | ') ? `Union[${written.replaceAll(' | ', ', ')}]` : written;
  const parts = /^(Literal|Union)\[(.*)\]$/.exec(type);
  const isLong = `${name} = ${type}`.length > LINE_LENGTH_MAX;
  const text = parts && isLong ? `${parts[1]}[\n${INDENT}${parts[2]?.replaceAll(', ', `,\n${INDENT}`)},\n]` : type;
  definitions.aliases.set(name, [`${name} = ${text}`, ...docstring(schema.description, '')].join('\n'));
}

/** An object with fields of its own, or one that adds fields to other objects. */
const isObject = ({ properties, allOf }: Schema): boolean =>
  properties !== undefined || (allOf?.some((part) => part.properties !== undefined || allOf.length > 1) ?? false);

function defineClass(definitions: Definitions, { name, schema, side }: Named): void {
  // The place comes first: an object stands before the objects inside of it.
  definitions.classes.set(name, '');
  const parts = schema.allOf ?? [schema];
  const bases = basesOf(schema);
  const fields = parts.flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).flatMap(([field, part]) => {
      if (!/^[A-Za-z_]\w*$/.test(field) || KEYWORDS.has(field)) throw new Error(`${name} has the field ${field}.`);
      const type = typeOf(definitions, { name: `${name}${pascalCase(field)}`, schema: part, side });
      const line = `${INDENT}${field}: ${required.includes(field) ? type : `NotRequired[${type}]`}`;
      return [line, ...docstring(part.description, INDENT)];
    }),
  );
  const body = [...docstring(schema.description, INDENT), ...fields];
  const head = `class ${name}(${[...bases, 'TypedDict'].slice(0, Math.max(bases.length, 1)).join(', ')}):`;
  definitions.classes.set(name, ['', '', head, ...(body.length > 0 ? body : [`${INDENT}pass`])].join('\n'));
}

/** The type of a schema as Python's source. An object without a name gets the given one. */
function typeOf(definitions: Definitions, named: Named): string {
  const { schema } = named;
  if (schema.$ref !== undefined) return referencedName(schema.$ref);
  if (schema.const !== undefined) return `Literal[${pythonLiteral(schema.const)}]`;
  if (schema.enum !== undefined) return literalOf(schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return unionOf(choices.map((part) => typeOf(definitions, variantOf(named, choices, part))));
  if (Array.isArray(schema.type))
    return unionOf(schema.type.map((type: string) => typeOf(definitions, { ...named, schema: { ...schema, type } })));
  return plainType(definitions, named);
}

/** Where several objects are possible, each is named by the constant that tells it from the others. */
function variantOf(named: Named, choices: readonly Schema[], part: Schema): Named {
  const isOnly = choices.filter(({ properties }) => properties).length < 2;
  if (isOnly || part.properties === undefined) return { ...named, schema: part };
  const constant = Object.values(part.properties).find((property) => property.const !== undefined)?.const;
  if (constant === undefined) throw new Error(`Nothing tells the objects of ${named.name} from each other.`);
  return { ...named, name: `${named.name}${pascalCase(String(constant))}`, schema: part };
}

function plainType(definitions: Definitions, named: Named): string {
  const { name, schema, side } = named;
  switch (schema.type) {
    case 'string':
      return schema.format === 'date-time' && side === 'request' ? 'Timestamp' : 'str';
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'boolean':
      return 'bool';
    case 'null':
      return 'None';
    case 'array': {
      const item = schema.items ? typeOf(definitions, { name, schema: schema.items, side }) : 'Any';
      return side === 'request' ? `Sequence[${item}]` : `list[${item}]`;
    }
    default:
      return objectType(definitions, named);
  }
}

function objectType(definitions: Definitions, named: Named): string {
  const { name, schema, side } = named;
  if (isObject(schema) && (schema.allOf || Object.keys(schema.properties ?? {}).length > 0)) {
    define(definitions, named);
    return name;
  }
  const [only] = schema.allOf ?? [];
  if (only) return typeOf(definitions, { ...named, schema: only });
  if (schema.type !== 'object') return 'Any';
  const { additionalProperties: rest } = schema;
  const value = typeof rest === 'object' ? typeOf(definitions, { name, schema: rest, side }) : 'Any';
  return side === 'request' ? `Mapping[str, ${value}]` : `dict[str, ${value}]`;
}

const literalOf = (values: NonNullable<Schema['enum']>): string => `Literal[${values.map(pythonLiteral).join(', ')}]`;

/** `None` stands last. */
function unionOf(types: readonly string[]): string {
  const distinct = [...new Set(types)].filter((type) => type !== 'None');
  const all = distinct.length < new Set(types).size ? [...distinct, 'None'] : distinct;
  const [only = 'Any'] = all;
  return all.length === 1 ? only : all.join(' | ');
}

/** An alias that is evaluated without any class. */
const isLiteral = (alias: string): boolean => /^\w+ = (Literal\[|str$)/m.test(alias);
