/**
 * What all operations of one kind have in common (contract §2): the credential, refusals, validation errors, headers.
 * It is added to the OpenAPI document from the declaration of each operation.
 */
import type { OpenAPIV3_1 } from 'openapi-types';
import { ERROR_CODES, type ErrorCode } from '../../domain/error.ts';
import type { Scope } from '../../domain/scope.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import { HEADER_NAMES } from '../http/validation.ts';
import type { Operation } from '../plugins/operation-list.ts';
import { type AnswerHeader, isCommand, type RouteConfig } from '../route-config.ts';
import { PUBLISHED_HEADERS } from './component.ts';
import { ALWAYS_POSSIBLE, type AlwaysPossible, headersOf, type SharedResponses } from './response.ts';

/** For an API key the requirement names the least scope (OpenAPI 3.1, Security Requirement Object: roles). */
function securityOf(access: RouteConfig): OpenAPIV3_1.SecurityRequirementObject[] {
  return access.auth === 'api_key' ? [{ ApiKey: [access.scope] }] : SECURITY[access.auth];
}

const scopeText = (scope: Scope): string =>
  scope === 'read' ? 'Scope: `read`, which every key covers.' : `Scope: \`${scope}\`.`;

const SECURITY: Record<Exclude<RouteConfig['auth'], 'api_key'>, OpenAPIV3_1.SecurityRequirementObject[]> = {
  optional_api_key: [{}, { ApiKey: [] }],
  session: [{ ConsumerSession: [] }],
  // The signature is a parameter: OpenAPI has no scheme for it.
  signature: [],
  none: [],
};

export const DEFAULT_SECURITY: OpenAPIV3_1.SecurityRequirementObject[] = [{ ApiKey: [] }];

const NO_CONTENT = '204';

const ANSWER_TEXT: Record<string, string> = {
  '200': 'Success.',
  '201': 'Created.',
  '202': 'Accepted. The work continues.',
  '204': 'Done.',
  '503': 'The service cannot take requests now.',
};

/** Adds to an operation what follows from its declaration. Answers that the route describes itself stay as they are. */
export function describeSharedAnswers(
  document: OpenAPIV3_1.Document,
  operation: Operation,
  shared: SharedResponses,
): void {
  const described = document.paths?.[operation.path]?.[operation.method.toLowerCase() as OpenAPIV3_1.HttpMethods];
  if (!described) return;
  const { access } = operation;
  described.security = securityOf(access);
  if (access.auth === 'api_key')
    described.description = [described.description, scopeText(access.scope)].filter(Boolean).join(' ');
  const responses: Record<string, OpenAPIV3_1.ResponseObject | OpenAPIV3_1.ReferenceObject> = {};
  const always = alwaysPossible(operation);
  for (const [status, codes] of sharedProblems(operation))
    if (codes.some((code) => !isIn(ALWAYS_POSSIBLE[always], code))) responses[status] = shared.problem(status, codes);
  if (hasInput(operation)) responses['422'] = shared.invalid();
  for (const [status, response] of Object.entries(described.responses ?? {})) {
    if (!('$ref' in response)) describeAnswer(status, response, isSuccess(status) ? operation.access.headers : []);
    responses[status] = response;
  }
  responses['default'] = shared.always(always);
  Object.assign(described, { responses });
  describeParameters(described);
  describeBody(described.requestBody);
}

const isIn = (codes: readonly ErrorCode[], code: ErrorCode): boolean => codes.includes(code);

/** 304 has the headers of the answer that the caller has. */
const isSuccess = (status: string): boolean => status.startsWith('2') || status === '304';

function describeAnswer(status: string, response: OpenAPIV3_1.ResponseObject, own: readonly AnswerHeader[] = []): void {
  const published = Object.keys(response.headers ?? {}).filter((name) => name in PUBLISHED_HEADERS);
  const headers = { ...response.headers, ...headersOf(status, [...own, ...published]) };
  if (Object.keys(headers).length > 0) response.headers = headers;
  if (response.description === 'Default Response') response.description = ANSWER_TEXT[status] ?? 'Success.';
  // A route must declare a schema for every answer. A 204 has no body, so its schema is removed here.
  if (status === NO_CONTENT) delete response.content;
}

/**
 * Headers that OpenAPI describes elsewhere: the accepted types by the content of the answers. The specification has
 * `authorization` as a parameter too.
 */
const DESCRIBED_ELSEWHERE = ['accept', 'content-type'];

function describeParameters(operation: OpenAPIV3_1.OperationObject): void {
  const { parameters } = operation;
  if (!parameters) return;
  operation.parameters = parameters.filter(
    (parameter) => !('in' in parameter && parameter.in === 'header' && DESCRIBED_ELSEWHERE.includes(parameter.name)),
  );
  if (operation.parameters.length === 0) delete operation.parameters;
  for (const parameter of operation.parameters ?? []) {
    if (!('in' in parameter)) continue;
    // Fastify has header names in lower case. The document writes them as the contract does.
    if (parameter.in === 'header') parameter.name = HEADER_NAMES[parameter.name] ?? capitalised(parameter.name);
    // An object in the query is sent as `name[key]=value`.
    if (parameter.in === 'query' && isObjectSchema(parameter.schema))
      Object.assign(parameter, { style: 'deepObject', explode: true });
    describeOnce(parameter);
  }
}

/** The description of a parameter is in its schema, or in both. */
function describeOnce(parameter: OpenAPIV3_1.ParameterObject): void {
  const { schema } = parameter;
  if (schema === undefined || !('description' in schema)) return;
  parameter.description ??= schema.description;
  if (schema.description === parameter.description) delete schema.description;
}

const isObjectSchema = (schema: OpenAPIV3_1.ParameterObject['schema']): boolean =>
  schema !== undefined && 'type' in schema && schema.type === 'object';

/** An optional body is marked on its schema, which then accepts null too. The document shows the body without null. */
function describeBody(body: OpenAPIV3_1.OperationObject['requestBody']): void {
  if (!body || '$ref' in body) return;
  // It repeats the description of the schema.
  delete body.description;
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

const isCounted = ({ uncounted }: RouteConfig): boolean => !uncounted;

function alwaysPossible(operation: Operation): AlwaysPossible {
  if (readsBody(operation)) return 'CommandFault';
  return isCounted(operation.access) ? 'ReadFault' : 'ProbeFault';
}

/** The error codes that follow from an operation's declaration, by status. */
function sharedProblems(operation: Operation): [string, ErrorCode[]][] {
  const { path, access, schema } = operation;
  const codes: ErrorCode[] = ['temporarily_unavailable', 'internal_error'];
  if (isCounted(access)) codes.push('rate_limited');
  if (access.auth === 'api_key' || access.auth === 'optional_api_key')
    codes.push('credential_missing', 'credential_ambiguous', 'credential_invalid');
  if (access.auth === 'session') codes.push('credential_missing', 'credential_invalid');
  if (access.auth === 'signature') codes.push('signature_invalid');
  if (access.auth === 'api_key' && access.scope !== 'read') codes.push('scope_insufficient');
  if (readsBody(operation)) codes.push('payload_too_large', 'unsupported_media_type', 'request_timeout');
  if (schema.body !== undefined && access.auth === 'api_key') codes.push('organization_mismatch');
  if (isCommand(operation.method, access)) codes.push('organization_suspended');
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
