/** `resources.py`: each operation as a typed method, once for the blocking and once for the asynchronous client. */

import {
  jsonSchemaOf,
  type OpenApi,
  operationsOf,
  type Parameter,
  type PlacedOperation,
  type Response,
  referencedName,
  type Schema,
} from './document.ts';
import { KEYWORDS } from './model.ts';
import { placeOf, REPEATABLE } from './operation.ts';
import { docstring, HEADER, LINE_LENGTH_MAX, pythonLiteral, pythonString } from './text.ts';

type Style = 'blocking' | 'asynchronous';

/** `type` has the default, where there is one. */
type QueryParameter = { readonly name: string; readonly sent: string; readonly type: string };

/** An operation with everything that a method needs to know. */
type Method = {
  readonly name: string;
  readonly path: string;
  readonly verb: string;
  readonly doc: string;
  readonly ids: readonly string[];
  readonly query: readonly QueryParameter[];
  /** The body's type; undefined for an operation without one. */
  readonly body: string | undefined;
  readonly result: string;
  readonly isList: boolean;
  readonly isKeyed: boolean;
  readonly isRepeatable: boolean;
};

const IMPORTS = `
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from typing_extensions import Unpack

from . import models
from ._request import Intent, call_of, creation, prepared, sending
from .paging import AsyncPages, Pages
from .resource import AsyncResource, Resource
`.trim();

/** @throws Error for an operation that has no place or no named types */
export function pythonResources(document: OpenApi): string {
  const groups = new Map<string, Method[]>();
  for (const placed of operationsOf(document)) {
    const place = placeOf(placed.operation.operationId);
    if (place === undefined) continue;
    const [group, name] = place;
    groups.set(group, [...(groups.get(group) ?? []), methodOf(document, placed, name)]);
  }
  const classes = [...groups].flatMap(([group, methods]) => [
    `class ${group}(Resource):\n${methods.map((method) => source(method, 'blocking')).join('\n\n')}`,
    `class Async${group}(AsyncResource):\n${methods.map((method) => source(method, 'asynchronous')).join('\n\n')}`,
  ]);
  return `${[HEADER, '', IMPORTS].join('\n')}\n\n\n${classes.join('\n\n\n')}\n`;
}

function methodOf(document: OpenApi, { path, method, operation }: PlacedOperation, name: string): Method {
  const { operationId, summary, description, requestBody, responses } = operation;
  const parameters = (operation.parameters ?? []).map((one) => resolved(document, one));
  const inQuery = parameters.filter((one) => one.in === 'query' && one.name !== 'offset');
  const isKeyed = parameters.some((one) => one.in === 'header' && one.name === 'Idempotency-Key');
  const answer = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
  const body = jsonSchemaOf(requestBody?.content);
  const isList = answer?.headers !== undefined && 'X-Total-Count' in answer.headers;
  return {
    name,
    path,
    verb: method,
    doc: [summary + (/[.!?]$/.test(summary) ? '' : '.'), description].filter(Boolean).join('\n\n'),
    ids: [...path.matchAll(/\{(\w+)\}/g)].map(([, id = '']) => id),
    query: inQuery.map((one) => queryOf(one)),
    body: body && named(body, `the body of ${operationId}`),
    result: resultOf(answer, isList, operationId),
    isList,
    isKeyed,
    isRepeatable: isKeyed || method === 'GET' || REPEATABLE.has(operationId),
  };
}

function resolved({ components }: OpenApi, parameter: Parameter): Parameter {
  if (parameter.$ref === undefined) return parameter;
  const found = components.parameters?.[referencedName(parameter.$ref)];
  if (found === undefined) throw new Error(`${parameter.$ref} is not in the document.`);
  return found;
}

function named(schema: Schema, what: string): string {
  if (Object.keys(schema).length === 0) return 'Any';
  if (schema.$ref === undefined) throw new Error(`There is no name for ${what}.`);
  return `models.${referencedName(schema.$ref)}`;
}

function resultOf(answer: Response | undefined, isList: boolean, operationId: string): string {
  const schema = jsonSchemaOf(answer?.content);
  if (schema === undefined) return 'None';
  const what = `the answer of ${operationId}`;
  if (schema.items === undefined) return named(schema, what);
  return isList ? named(schema.items, what) : `Sequence[${named(schema.items, what)}]`;
}

/** `limit` is the size of a page here: iterating a list reads all of its pages. */
function queryOf({ name, schema, required = false }: Parameter): QueryParameter {
  const type = `${queryType(schema)}${required ? '' : ' | None = None'}`;
  // A keyword of Python is no name of a parameter.
  return { name: name === 'limit' ? 'page_size' : KEYWORDS.has(name) ? `${name}_` : name, sent: name, type };
}

function queryType(schema: Schema): string {
  if (schema.$ref !== undefined) return `models.${referencedName(schema.$ref)}`;
  if (schema.enum) return `Literal[${schema.enum.map(pythonLiteral).join(', ')}]`;
  if (schema.items) return `${queryType(schema.items)} | Sequence[${queryType(schema.items)}]`;
  if (schema.type === 'object') return 'Mapping[str, str]';
  if (schema.type === 'integer') return 'int';
  if (schema.type === 'boolean') return 'bool';
  return schema.format === 'date-time' ? 'models.Timestamp' : 'str';
}

function source(method: Method, style: Style): string {
  if (method.isKeyed && method.ids.length === 0) return keyedSource(method, style);
  const returned = method.isList ? `${style === 'blocking' ? '' : 'Async'}Pages[${method.result}]` : method.result;
  const define = style === 'blocking' || method.isList ? 'def' : 'async def';
  return [
    ...signature(`${define} ${method.name}`, parametersOf(method), `${returned}:`),
    ...docstring(method.doc, BODY),
    method.isList ? statement(pagesOf(method)) : running(callOf(method), method, style),
  ].join('\n');
}

/** On one line where it fits. */
function signature(start: string, parameters: readonly string[], returned: string): string[] {
  const line = `    ${start}(${parameters.join(', ')}) -> ${returned}`;
  if (line.length <= LINE_LENGTH_MAX) return [line];
  return [`    ${start}(`, ...parameters.map((one) => `        ${one},`), `    ) -> ${returned}`];
}

function parametersOf({ ids, query, body, isKeyed }: Method): string[] {
  const keywords = [...query.map(({ name, type }) => `${name}: ${type}`), ...(isKeyed ? [KEY] : [])];
  const isStarred = keywords.length > 0;
  return [
    'self',
    ...ids.map((id) => `${id}: str`),
    ...(isStarred ? ['*', ...keywords] : []),
    ...(body ? [`**fields: Unpack[${body}]`] : []),
  ];
}

/** Python: a call or a mapping, or what stands on one line. */
type Expression = string | readonly [start: string, parts: readonly Expression[], end: string];

const calling = (name: string, parts: readonly Expression[]): Expression => [`${name}(`, parts, ')'];

/** The request of a method that does not make a list, as a `Call`. */
function callOf({ path, verb, ids, query, body, isKeyed, isRepeatable }: Method): Expression {
  const values = ids.map((id) => `${id}=${id}`);
  const fields = body ? ['fields'] : [];
  if (isKeyed)
    return calling('sending', [calling('prepared', [pythonString(path), 'idempotency_key', ...fields, ...values])]);
  return calling('call_of', [
    pythonString(verb),
    pythonString(path),
    ...fields,
    ...(query.length > 0 ? [mappingOf('query={', query)] : []),
    ...(isRepeatable && verb !== 'GET' ? ['repeatable=True'] : []),
    ...values,
  ]);
}

const pagesOf = ({ path, ids, query }: Method): Expression =>
  calling('return self._pages', [pythonString(path), mappingOf('{', query), ...ids.map((id) => `${id}=${id}`)]);

const mappingOf = (start: string, query: readonly QueryParameter[]): Expression => [
  start,
  query.map(({ name, sent }) => `${pythonString(sent)}: ${name}`),
  '}',
];

function running(call: Expression, { result }: Method, style: Style): string {
  const returned = result === 'None' ? '' : 'return ';
  return statement(calling(`${returned}${style === 'blocking' ? '' : 'await '}self._run`, [call]));
}

/** The indent of a method's statements. */
const BODY = '        ';

const statement = (expression: Expression): string => `${BODY}${laidOut(expression, BODY.length)}`;

/** As ruff lays it out: on one line where it fits, with its parts on one line, or with a line for each part. */
function laidOut(expression: Expression, indent: number, after = ''): string {
  const line = flat(expression);
  if (typeof expression === 'string' || fits(indent, line + after)) return line + after;
  const [start, parts, end] = expression;
  const inner = indent + 4;
  const together = flat(['', parts, '']);
  const lines = fits(inner, together) ? [together] : parts.map((part) => laidOut(part, inner, ','));
  return [start, ...lines.map((one) => ' '.repeat(inner) + one), ' '.repeat(indent) + end + after].join('\n');
}

const fits = (indent: number, line: string): boolean => indent + line.length <= LINE_LENGTH_MAX;

function flat(expression: Expression): string {
  if (typeof expression === 'string') return expression;
  const [start, parts, end] = expression;
  return `${start}${parts.map(flat).join(', ')}${end}`;
}

const KEY = 'idempotency_key: str | None = None';

/** A creation takes its fields, or an intent that was prepared from them before. */
function keyedSource(method: Method, style: Style): string {
  const { name, path, body, result, doc } = method;
  const prepare = name === 'create' ? 'prepare' : `prepare_${name.replace(/^create_/, '')}`;
  const define = style === 'blocking' ? 'def' : 'async def';
  const fields = body === undefined ? [] : [`**fields: Unpack[${body}]`];
  const ofFields = ['self', '*', KEY, ...fields];
  const ofBoth = ['self', 'intent: Intent | None = None', '*', KEY, ...(body === undefined ? [] : ['**fields: Any'])];
  const quoted = pythonString(path);
  const prepared = flat(calling('prepared', [quoted, 'idempotency_key', ...(body === undefined ? [] : ['fields'])]));
  return [
    '    @overload',
    ...signature(`${define} ${name}`, ['self', 'intent: Intent'], `${result}: ...`),
    '    @overload',
    ...signature(`${define} ${name}`, ofFields, `${result}: ...`),
    ...signature(`${define} ${name}`, ofBoth, `${result}:`),
    ...docstring(doc, BODY),
    running(calling('creation', [`intent or ${prepared}`, quoted]), method, style),
    '',
    ...signature(`def ${prepare}`, ofFields, 'Intent:'),
    ...docstring(`Makes the intent of \`${name}\`, without sending it: store it, then \`${name}(intent)\`.`, BODY),
    `${BODY}return ${prepared}`,
  ].join('\n');
}
