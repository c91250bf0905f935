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
from ._request import Call, Intent, creation, encoded, path_of, prepared
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
  const isAwaited = style === 'asynchronous' && !method.isList;
  const run = method.isList ? 'self._pages' : isAwaited ? 'await self._run' : 'self._run';
  return [
    ...signature(`${isAwaited ? 'async ' : ''}def ${method.name}`, parametersOf(method), `${returned}:`),
    ...docstring(method.doc, '        '),
    `        call: Call[${method.result}] = ${callOf(method)}`,
    `        return ${run}(call)`,
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

function callOf({ path, verb, ids, query, body, result, isKeyed, isRepeatable }: Method): string {
  const values = ids.map((id) => `, ${id}=${id}`).join('');
  if (isKeyed) {
    const fields = body ? 'fields' : 'None';
    const given = [pythonString(path), 'idempotency_key', fields, ...ids.map((id) => `${id}=${id}`)];
    const intent = calling('prepared', given, '            ');
    return calling('creation', [intent, pythonString(path)], '        ', `call: Call[${result}] = `);
  }
  const parts = [
    pythonString(verb),
    `path_of(${pythonString(path)}${values})`,
    ...(query.length ? [queryMapping(query)] : []),
    ...(body ? ['body=encoded(fields)'] : []),
    ...(isRepeatable ? ['repeatable=True'] : []),
  ];
  return calling('Call', parts, '        ', `call: Call[${result}] = `);
}

/** A call on one line where it fits behind `before`, with its comma. Otherwise each argument has a line. */
function calling(name: string, given: readonly string[], indent: string, before = ''): string {
  const line = `${name}(${given.join(', ')})`;
  const isShort = `${indent}${before}${line},`.length <= LINE_LENGTH_MAX && !line.includes('\n');
  return isShort ? line : `${name}(\n${given.map((one) => `${indent}    ${one},\n`).join('')}${indent})`;
}

/** On one line where it fits. */
function queryMapping(query: readonly QueryParameter[]): string {
  const pairs = query.map(({ name, sent }) => `${pythonString(sent)}: ${name}`);
  const line = `query={${pairs.join(', ')}}`;
  if (`            ${line},`.length <= LINE_LENGTH_MAX) return line;
  return `query={\n${pairs.map((pair) => `                ${pair},\n`).join('')}            }`;
}

const KEY = 'idempotency_key: str | None = None';

/** A creation takes its fields, or an intent that was prepared from them before. */
function keyedSource(method: Method, style: Style): string {
  const { name, path, body, result, doc } = method;
  const prepare = name === 'create' ? 'prepare' : `prepare_${name.replace(/^create_/, '')}`;
  const [define, run] = style === 'blocking' ? ['def', 'self._run'] : ['async def', 'await self._run'];
  const fields = body === undefined ? [] : [`**fields: Unpack[${body}]`];
  const ofFields = ['self', '*', KEY, ...fields];
  const ofBoth = ['self', 'intent: Intent | None = None', '*', KEY, ...(fields.length > 0 ? ['**fields: Any'] : [])];
  const prepared = `prepared(${pythonString(path)}, idempotency_key${fields.length > 0 ? ', fields' : ''})`;
  return [
    '    @overload',
    ...signature(`${define} ${name}`, ['self', 'intent: Intent'], `${result}: ...`),
    '    @overload',
    ...signature(`${define} ${name}`, ofFields, `${result}: ...`),
    ...signature(`${define} ${name}`, ofBoth, `${result}:`),
    ...docstring(doc, '        '),
    `        chosen = intent or ${prepared}`,
    `        call: Call[${result}] = creation(chosen, ${pythonString(path)})`,
    `        return ${run}(call)`,
    '',
    ...signature(`def ${prepare}`, ofFields, 'Intent:'),
    ...docstring(
      `Makes the intent of \`${name}\`, without sending it: store it, then \`${name}(intent)\`.`,
      '        ',
    ),
    `        return ${prepared}`,
  ].join('\n');
}
