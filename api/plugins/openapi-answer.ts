/**
 * What all operations of one kind answer alike (contract §2): the credential, refusals, validation errors, headers. It
 * is added to the OpenAPI document from the declaration of each operation.
 */
import type { OpenAPIV3_1 } from 'openapi-types';
import { ERROR_CODES, ERROR_TEXT, type ErrorCode } from '../../domain/error.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import { HEADER_NAMES } from '../http/validation.ts';
import type { AnswerHeader, RouteConfig } from '../route-config.ts';
import type { Operation } from './operation-list.ts';

const SECURITY: Partial<Record<RouteConfig['auth'], OpenAPIV3_1.SecurityRequirementObject[]>> = {
  api_key: [{ ApiKey: [] }],
  optional_api_key: [{}, { ApiKey: [] }],
  session: [{ ConsumerSession: [] }],
};

const NO_CONTENT = '204';

/** Headers of an answer with this status, beside the headers of every answer. */
const STATUS_HEADERS: Record<string, readonly string[]> = {
  '304': ['ETag'],
  '401': ['WWW-Authenticate'],
  '429': ['Retry-After'],
  '503': ['Retry-After'],
};

const SUCCESS_TEXT: Record<string, string> = {
  '200': 'Success.',
  '201': 'Created.',
  '202': 'Accepted. The work continues.',
  '204': 'Done.',
};

const VALIDATION_RESPONSE: OpenAPIV3_1.ResponseObject = {
  description: 'Validation failed. All faults of the request are listed.',
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/HTTPValidationError' },
      example: { detail: [{ loc: ['body', 'amount'], msg: 'Field required', type: 'missing' }] },
    },
  },
};

/** Adds to an operation what follows from its declaration. Answers that the route describes itself stay as they are. */
export function describeSharedAnswers(document: OpenAPIV3_1.Document, operation: Operation): void {
  const described = document.paths?.[operation.path]?.[operation.method.toLowerCase() as OpenAPIV3_1.HttpMethods];
  if (!described) return;
  const security = SECURITY[operation.access.auth];
  if (security) described.security = security;
  const responses: Record<string, OpenAPIV3_1.ResponseObject | OpenAPIV3_1.ReferenceObject> = {};
  for (const [status, codes] of sharedProblems(operation)) responses[status] = problemResponse(codes);
  if (hasInput(operation)) responses['422'] = { ...VALIDATION_RESPONSE };
  Object.assign(responses, described.responses);
  for (const [status, response] of Object.entries(responses)) {
    if (!('$ref' in response)) describeAnswer(status, response, status.startsWith('2') ? operation.access.headers : []);
  }
  Object.assign(described, { responses });
  spellHeaders(described);
  describeObjectParameters(described);
  describeBody(described.requestBody);
}

function describeAnswer(status: string, response: OpenAPIV3_1.ResponseObject, own: readonly AnswerHeader[] = []): void {
  const names = ['X-Request-ID', ...(STATUS_HEADERS[status] ?? []), ...own];
  const shared = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  Object.assign(response, { headers: { ...shared, ...response.headers } });
  if (response.description === 'Default Response') response.description = SUCCESS_TEXT[status] ?? 'Success.';
  // A route must declare a schema for every answer. A 204 has no body, so its schema is removed here.
  if (status === NO_CONTENT) delete response.content;
}

/** An object in the query is sent as `name[key]=value`. */
function describeObjectParameters({ parameters = [] }: OpenAPIV3_1.OperationObject): void {
  for (const parameter of parameters)
    if ('in' in parameter && parameter.in === 'query' && isObjectSchema(parameter.schema))
      Object.assign(parameter, { style: 'deepObject', explode: true });
}

const isObjectSchema = (schema: OpenAPIV3_1.ParameterObject['schema']): boolean =>
  schema !== undefined && 'type' in schema && schema.type === 'object';

/** Fastify has header names in lower case. The document writes them as the specification does. */
function spellHeaders(operation: OpenAPIV3_1.OperationObject): void {
  for (const parameter of operation.parameters ?? []) {
    if ('in' in parameter && parameter.in === 'header')
      parameter.name = HEADER_NAMES[parameter.name] ?? capitalised(parameter.name);
  }
}

/** An optional body is marked on its schema, which then accepts null too. The document shows the body without null. */
function describeBody(body: OpenAPIV3_1.OperationObject['requestBody']): void {
  if (!body || '$ref' in body) return;
  for (const media of Object.values(body.content)) {
    const { schema } = media;
    if (!schema || !(OPTIONAL_BODY in schema)) continue;
    const [given] = 'anyOf' in schema ? (schema.anyOf ?? []) : [];
    if (given) media.schema = given;
    body.required = false;
  }
}

const OPTIONAL_BODY = 'x-fastify-zod-openapi-optional';

const capitalised = (header: string): string => header.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());

/** Whether a body is read and checked against the limits. That happens even if the operation takes no body. */
const readsBody = ({ method }: Operation): boolean => method !== 'GET';

/** Whether the operation takes any input that is validated. */
const hasInput = (operation: Operation): boolean => {
  const { params, querystring, headers } = operation.schema;
  return readsBody(operation) || [params, querystring, headers].some((part) => part !== undefined);
};

/** The error codes that follow from an operation's declaration, by status. */
function sharedProblems(operation: Operation): [string, ErrorCode[]][] {
  const { path, access, schema } = operation;
  const codes: ErrorCode[] = ['rate_limited', 'temporarily_unavailable', 'internal_error'];
  if (access.auth === 'api_key' || access.auth === 'optional_api_key')
    codes.push('credential_missing', 'credential_ambiguous', 'credential_invalid');
  if (access.auth === 'session') codes.push('credential_missing', 'credential_invalid');
  if (access.auth === 'signature') codes.push('signature_invalid');
  if (access.auth === 'api_key' && access.scope !== 'read') codes.push('scope_insufficient');
  if (readsBody(operation)) codes.push('payload_too_large', 'unsupported_media_type', 'request_timeout');
  if (schema.body !== undefined && access.auth === 'api_key') codes.push('organization_mismatch');
  if (path.includes('{') && access.auth === 'api_key') codes.push('not_found');
  if (access.remote && access.remote !== 'same') codes.push(access.remote);
  codes.push(...(access.refusals ?? []));
  const byStatus = new Map<string, ErrorCode[]>();
  for (const code of ERROR_CODES.filter((candidate) => codes.includes(candidate))) {
    const status = String(STATUS_OF[code]);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return [...byStatus];
}

/** A problem answer: its description lists the possible codes with their public texts. */
function problemResponse(codes: readonly ErrorCode[]): OpenAPIV3_1.ResponseObject {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_TEXT[code].detail}`).join('\n\n'),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
}
