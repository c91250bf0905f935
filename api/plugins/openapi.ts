/**
 * The OpenAPI document (contract §15), generated from the routes' schemas and declarations. What every operation
 * of a kind answers alike - credentials, validation, limits, gates - is added here from its declaration.
 */
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { fastifyZodOpenApiPlugin, fastifyZodOpenApiTransformers } from 'fastify-zod-openapi';
import type { OpenAPIV3_1 } from 'openapi-types';
import { z } from 'zod';
import { type CreateDocumentOptions, createSchema } from 'zod-openapi';
import { ERROR_CODES, ERROR_TEXT, type ErrorCode } from '../../domain/error.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import { HEADER_NAMES } from '../http/validation.ts';
import type { AnswerHeader, RouteConfig } from '../route-config.ts';
import { EXAMPLE_ID, Problem } from '../schemas/common.ts';
import type { Operation } from './operation-list.ts';

const EXAMPLE_INSTANCE = '/v2/settle';

export const API_VERSION = '2.0.0';

const TAGS = [
  'Settlement',
  'Provider webhooks',
  'Bank linking',
  'Consumer',
  'Organizations and keys',
  'Recipients',
  'Verification',
  'Wallets and fees',
  'Caribbean off-ramp',
  'Webhooks',
  'Posture',
  'Sandbox',
  'Service',
] as const;

export const openapi = fp(async (app: FastifyInstance) => {
  // A default around what only its `override` describes is empty before that override.
  await app.register(fastifyZodOpenApiPlugin, {
    documentOpts: { override: tidySchema, allowEmptySchema: { default: true } },
  });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Settlement service',
        version: API_VERSION,
        description:
          'Settlement and payout API for Caribbean corridors. Controlled infrastructure under hardening: value moves only in the local sandbox, as a simulation; elsewhere every value operation answers 503 before anything is collected. No corridor is live.',
      },
      tags: TAGS.map((name) => ({ name })),
      components: {
        securitySchemes: {
          ApiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'X-API-Key',
            description: 'Exactly one header with exactly one key.',
          },
          ConsumerSession: { type: 'http', scheme: 'bearer' },
        },
      },
    },
    transform: fastifyZodOpenApiTransformers.transform,
    transformObject: (options) =>
      describeSharedAnswers(
        fastifyZodOpenApiTransformers.transformObject(options) as OpenAPIV3_1.Document,
        app.operations.filter(({ schema }) => !schema.hide),
      ),
  });
});

/** What `/openapi.json` itself answers. */
export const OpenApiDocument = z.looseObject({ openapi: z.literal('3.1.0') }).meta({ id: 'OpenApiDocument' });

/** Answers may grow fields, so their schemas are open (contract §1); bounds and patterns that only repeat the type are noise. */
const tidySchema: NonNullable<CreateDocumentOptions['override']> = ({ jsonSchema, io }) => {
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
};

function describeSharedAnswers(document: OpenAPIV3_1.Document, operations: readonly Operation[]): OpenAPIV3_1.Document {
  const schemas = { ...document.components?.schemas, ...componentSchemas() };
  for (const operation of operations) {
    const item = document.paths?.[operation.path];
    const described = item?.[operation.method.toLowerCase() as OpenAPIV3_1.HttpMethods];
    if (!described) continue;
    const security = SECURITY[operation.access.auth];
    if (security) described.security = security;
    const responses: Record<string, OpenAPIV3_1.ResponseObject | OpenAPIV3_1.ReferenceObject> = {};
    for (const [status, codes] of sharedProblems(operation)) responses[status] = problemResponse(codes);
    if (hasInput(operation)) responses['422'] = { ...VALIDATION_RESPONSE };
    Object.assign(responses, described.responses);
    for (const [status, response] of Object.entries(responses)) {
      if (!('$ref' in response))
        describeAnswer(status, response, status.startsWith('2') ? operation.access.headers : []);
    }
    Object.assign(described, { responses });
    spellHeaders(described);
    describeBody(described.requestBody);
  }
  return {
    ...document,
    components: {
      ...document.components,
      schemas: sortedByName(schemas),
      examples: PROBLEM_EXAMPLES,
      headers: HEADERS,
    },
  };
}

function describeAnswer(status: string, response: OpenAPIV3_1.ResponseObject, own: readonly AnswerHeader[] = []): void {
  const names = ['X-Request-ID', ...(STATUS_HEADERS[status] ?? []), ...own];
  const shared = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  Object.assign(response, { headers: { ...shared, ...response.headers } });
  if (response.description === 'Default Response') response.description = SUCCESS_TEXT[status] ?? 'Success.';
  // Routes must give every answer a schema; the answer that has no body has none to describe.
  if (status === NO_CONTENT) delete response.content;
}

/** Fastify knows headers in lower case; the document spells them as the specification does. */
function spellHeaders(operation: OpenAPIV3_1.OperationObject): void {
  for (const parameter of operation.parameters ?? []) {
    if ('in' in parameter && parameter.in === 'header')
      parameter.name = HEADER_NAMES[parameter.name] ?? capitalised(parameter.name);
  }
}

/** A body that may be left out is marked so on its schema, which then also takes null: that is no rule for clients to follow. */
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

const sortedByName = <Value>(record: Record<string, Value>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

const SECURITY: Partial<Record<RouteConfig['auth'], OpenAPIV3_1.SecurityRequirementObject[]>> = {
  api_key: [{ ApiKey: [] }],
  optional_api_key: [{}, { ApiKey: [] }],
  session: [{ ConsumerSession: [] }],
};

const HEADERS: Record<AnswerHeader | 'X-Request-ID' | 'WWW-Authenticate' | 'ETag', OpenAPIV3_1.HeaderObject> = {
  'X-Request-ID': {
    description: "The request's id: the caller's own when it was well-formed.",
    schema: { type: 'string' },
  },
  'WWW-Authenticate': { description: 'The credential that the operation takes.', schema: { type: 'string' } },
  'Retry-After': {
    description: 'Seconds after which the request is worth repeating; absent when it never is.',
    schema: { type: 'integer', minimum: 1 },
  },
  ETag: { description: 'The SHA-256 of the bytes, in hex.', schema: { type: 'string' } },
  Location: { description: 'Where the object is read.', schema: { type: 'string' } },
  'Idempotency-Replayed': {
    description: "`true` when this is the answer to the key's first use, and nothing was done now; absent otherwise.",
    schema: { type: 'string', enum: ['true'] },
  },
  'Preference-Applied': {
    description: 'The wait that was granted (RFC 7240); absent when none was asked for.',
    schema: { type: 'string' },
  },
};

const NO_CONTENT = '204';

/** Headers that an answer of this status has beside those of every answer. */
const STATUS_HEADERS: Record<string, readonly string[]> = {
  '304': ['ETag'],
  '401': ['WWW-Authenticate'],
  '429': ['Retry-After'],
  '503': ['Retry-After'],
};

const SUCCESS_TEXT: Record<string, string> = {
  '200': 'Success.',
  '201': 'Created.',
  '202': 'Accepted; the work goes on.',
  '204': 'Done.',
};

const VALIDATION_RESPONSE: OpenAPIV3_1.ResponseObject = {
  description: 'Validation failed; every fault of the request is listed.',
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/HTTPValidationError' },
      example: { detail: [{ loc: ['body', 'amount'], msg: 'Field required', type: 'missing' }] },
    },
  },
};

/** Bodies are read, and held against their limits, before it is known whether the operation has any use for one. */
const readsBody = ({ method }: Operation): boolean => method !== 'GET';

/** Whether the operation takes anything that validation looks at. */
const hasInput = (operation: Operation): boolean => {
  const { params, querystring, headers } = operation.schema;
  return readsBody(operation) || [params, querystring, headers].some((part) => part !== undefined);
};

/** The refusals that follow from an operation's declaration, by status. */
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

/** A problem answer that names its possible codes; `detail` of the list is their public text. */
export function problemResponse(codes: readonly ErrorCode[]): OpenAPIV3_1.ResponseObject {
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

/** A problem of each code, as it comes; the members that only some codes have are told in `docs/errors.md`. */
const PROBLEM_EXAMPLES: Record<string, OpenAPIV3_1.ExampleObject> = Object.fromEntries(
  ERROR_CODES.map((code) => [
    code,
    {
      value: {
        type: `/problems/${code}`,
        ...ERROR_TEXT[code],
        status: STATUS_OF[code],
        instance: EXAMPLE_INSTANCE,
        code,
        request_id: EXAMPLE_ID,
      },
    },
  ]),
);

/** FastAPI's own two schemas, exactly: clients and checks compare them. */
const VALIDATION_SCHEMAS: Record<string, OpenAPIV3_1.SchemaObject> = {
  HTTPValidationError: {
    properties: { detail: { items: { $ref: '#/components/schemas/ValidationError' }, type: 'array', title: 'Detail' } },
    type: 'object',
    title: 'HTTPValidationError',
  },
  ValidationError: {
    properties: {
      loc: { items: { anyOf: [{ type: 'string' }, { type: 'integer' }] }, type: 'array', title: 'Location' },
      msg: { type: 'string', title: 'Message' },
      type: { type: 'string', title: 'Error Type' },
    },
    type: 'object',
    required: ['loc', 'msg', 'type'],
    title: 'ValidationError',
  },
};

function componentSchemas(): Record<string, OpenAPIV3_1.SchemaObject> {
  const problem = createSchema(Problem, { io: 'output', openapiVersion: '3.1.0', opts: { override: tidySchema } });
  return { ...VALIDATION_SCHEMAS, ...problem.components } as Record<string, OpenAPIV3_1.SchemaObject>;
}
