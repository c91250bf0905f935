/** The named components of the OpenAPI document that no route's schema brings: headers, problems, FastAPI's schemas. */
import type { OpenAPIV3_1 } from 'openapi-types';
import { type CreateDocumentOptions, createSchema } from 'zod-openapi';
import { ERROR_CODES, ERROR_TEXT } from '../../domain/error.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import type { AnswerHeader } from '../route-config.ts';
import { EXAMPLE_ID, Problem } from '../schemas/common.ts';

const EXAMPLE_INSTANCE = '/v2/settle';

/** Answers may grow fields, so their schemas are open (contract §1); bounds and patterns that only repeat the type are noise. */
export const tidySchema: NonNullable<CreateDocumentOptions['override']> = ({ jsonSchema, io }) => {
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
};

/** Adds the shared components to the document. */
export function addComponents(document: OpenAPIV3_1.Document): OpenAPIV3_1.Document {
  const schemas = sortedByName({ ...document.components?.schemas, ...componentSchemas() });
  return {
    ...document,
    components: { ...document.components, schemas, examples: PROBLEM_EXAMPLES, headers: HEADERS },
  };
}

function componentSchemas(): Record<string, OpenAPIV3_1.SchemaObject> {
  const problem = createSchema(Problem, { io: 'output', openapiVersion: '3.1.0', opts: { override: tidySchema } });
  return { ...VALIDATION_SCHEMAS, ...problem.components } as Record<string, OpenAPIV3_1.SchemaObject>;
}

const sortedByName = <Value>(record: Record<string, Value>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

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
