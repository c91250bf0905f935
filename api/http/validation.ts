/**
 * Turns zod's issues into FastAPI's HTTPValidationError (contract §2): pydantic's types, all faults of all parts of the
 * request, and never a submitted value.
 */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { rulesOf } from '../schemas/rule.ts';
import { parseQuery, splitAddress } from './query-string.ts';
import { FAULTS_MAX, InvalidRequestError, type RequestFault, valueError } from './request-fault.ts';

/** The parts of a request as they were sent. Fastify has replaced the valid parts by what their schemas returned. */
const PARTS = [
  { part: 'path', schemaKey: 'params', read: (request: FastifyRequest) => request.params },
  {
    part: 'query',
    schemaKey: 'querystring',
    read: (request: FastifyRequest) => parseQuery(splitAddress(request.url).query),
  },
  { part: 'header', schemaKey: 'headers', read: (request: FastifyRequest) => request.raw.headers },
  {
    part: 'body',
    schemaKey: 'body',
    read: (request: FastifyRequest) => request.parsedBody,
  },
] as const;

/** Names of headers as the contract writes them. */
export const HEADER_NAMES: Record<string, string> = {
  'idempotency-key': 'Idempotency-Key',
  prefer: 'Prefer',
  authorization: 'authorization',
  accept: 'Accept',
};

/** The faults of all parts. Fastify itself stops at the first part that has one, and knows no `rules`. */
export function requestFaults(request: FastifyRequest): RequestFault[] {
  const { schema: declared, config } = request.routeOptions;
  const schemas: Record<string, unknown> = { ...declared, ...(config.access?.rules && { body: config.access.rules }) };
  return PARTS.flatMap(({ part, schemaKey, read }) => {
    const schema = schemas[schemaKey];
    if (!(schema instanceof z.ZodType)) return [];
    const input = read(request);
    // An absent body is one fault, not a list of missing fields.
    const given = part === 'body' ? (input ?? undefined) : input;
    const issues = [schema, ...rulesOf(schema)].flatMap(
      (form) => form.safeParse(given, { reportInput: true }).error?.issues ?? [],
    );
    return distinct(faultsOfIssues(issues, part));
  }).slice(0, FAULTS_MAX);
}

/** A form and its rules find the same faults of the same fields. */
const distinct = (faults: readonly RequestFault[]): RequestFault[] => [
  ...new Map(faults.map((fault) => [JSON.stringify(fault), fault])).values(),
];

/** Why a request with a valid form is refused by the `rules` of its route. */
export function refusalByRules(request: FastifyRequest): InvalidRequestError | undefined {
  if (!request.routeOptions.config.access?.rules) return undefined;
  const faults = requestFaults(request);
  return faults.length > 0 ? new InvalidRequestError(faults) : undefined;
}

/**
 * The first faults of these issues. No more are made than an answer has: one issue can name thousands of fields.
 *
 * @param part the part of the request: `body`, `path`, `query` or `header`
 */
export const faultsOfIssues = (issues: readonly z.core.$ZodIssue[], part: string): RequestFault[] =>
  issues
    .slice(0, FAULTS_MAX)
    .flatMap((issue) => faultsOf(issue, part))
    .slice(0, FAULTS_MAX);

function faultsOf(issue: z.core.$ZodIssue, part: string): RequestFault[] {
  const at = (path: readonly PropertyKey[]) => [part, ...path.map((key) => locate(key, part))];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.slice(0, FAULTS_MAX).map((key) => ({
      loc: at([...issue.path, key]),
      msg: 'Extra inputs are not permitted',
      type: 'extra_forbidden',
    }));
  }
  if (issue.code === 'invalid_key') return [{ loc: at(issue.path), ...valueError('the key is not allowed') }];
  return [{ loc: at(issue.path), ...describe(issue) }];
}

const NAME_LENGTH_MAX = 64;

/** The value of an unknown key is never shown, and the key only up to a limit. */
function locate(key: PropertyKey, part: string): string | number {
  if (typeof key === 'number') return key;
  const name = String(key).slice(0, NAME_LENGTH_MAX).toWellFormed();
  return part === 'header' ? (HEADER_NAMES[name] ?? name) : name;
}

const TYPE_FAULTS: Record<string, { msg: string; type: string }> = {
  string: { msg: 'Input should be a valid string', type: 'string_type' },
  boolean: { msg: 'Input should be a valid boolean', type: 'bool_type' },
  array: { msg: 'Input should be a valid list', type: 'list_type' },
  object: { msg: 'Input should be a valid object', type: 'dict_type' },
  record: { msg: 'Input should be a valid object', type: 'dict_type' },
  // Every number of the interface is an integer: money is text.
  number: { msg: 'Input should be a valid integer', type: 'int_type' },
  int: { msg: 'Input should be a valid integer', type: 'int_type' },
};

function describe(issue: z.core.$ZodIssue): { msg: string; type: string } {
  if (
    'input' in issue &&
    issue.input === undefined &&
    (issue.code === 'invalid_type' || issue.code === 'invalid_value' || issue.code === 'invalid_union')
  ) {
    return { msg: 'Field required', type: 'missing' };
  }
  switch (issue.code) {
    case 'invalid_type':
      return TYPE_FAULTS[issue.expected] ?? valueError('the value has the wrong type');
    case 'too_small':
      return sizeFault(issue.origin, 'at least', Number(issue.minimum));
    case 'too_big':
      return sizeFault(issue.origin, 'at most', Number(issue.maximum));
    case 'invalid_format':
      return issue.format === 'regex'
        ? { msg: `String should be ${issue.message}`, type: 'string_pattern_mismatch' }
        : valueError(issue.message);
    case 'invalid_value':
      return { msg: `Input should be ${oneOf(issue.values.map(String))}`, type: 'enum' };
    case 'custom':
      return typeof issue.params?.['type'] === 'string'
        ? { msg: issue.message, type: issue.params['type'] }
        : valueError(issue.message);
    default:
      return valueError('the value is not allowed');
  }
}

function sizeFault(origin: string, bound: 'at least' | 'at most', limit: number): { msg: string; type: string } {
  const low = bound === 'at least';
  if (origin === 'string')
    return {
      msg: `String should have ${bound} ${limit} character${limit === 1 ? '' : 's'}`,
      type: low ? 'string_too_short' : 'string_too_long',
    };
  if (origin === 'array')
    return {
      msg: `List should have ${bound} ${limit} item${limit === 1 ? '' : 's'}`,
      type: low ? 'too_short' : 'too_long',
    };
  return {
    msg: `Input should be ${low ? 'greater' : 'less'} than or equal to ${limit}`,
    type: low ? 'greater_than_equal' : 'less_than_equal',
  };
}

const oneOf = (values: readonly string[]): string => {
  const quoted = values.map((value) => `'${value}'`);
  return quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
};
