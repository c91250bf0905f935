/** The components of the OpenAPI document that are not in a route's schema: headers, problems and FastAPI's schemas. */
import type { OpenAPIV3_1 } from 'openapi-types';
import { z } from 'zod';
import { type CreateDocumentOptions, createSchema } from 'zod-openapi';
import { ERROR_CODES } from '../../domain/error.ts';
import { problemOf } from '../http/error-handler.ts';
import { PAGE_HEADERS } from '../http/pagination.ts';
import type { AnswerHeader } from '../route-config.ts';
import { CertificateFields } from '../schemas/certificate.ts';
import { EXAMPLE_ID } from '../schemas/common.ts';
import { EstimateFigures } from '../schemas/estimate.ts';
import { EventEnvelope, SettlementEvent } from '../schemas/event.ts';
import { EXTENDED_PROBLEMS, Problem, ProblemFields } from '../schemas/problem.ts';
import { StepMoment } from '../schemas/scenario.ts';
import { SettlementFields } from '../schemas/settlement.ts';
import { VerificationFields } from '../schemas/verification.ts';
import { extendSchemas } from './extension.ts';

/**
 * Opens the schemas of answers, which may grow fields (contract §1), and drops bounds and patterns that repeat the
 * type.
 */
export const tidySchema: NonNullable<CreateDocumentOptions['override']> = ({ jsonSchema, io }) => {
  if (io === 'output' && isOpenOrClosed(jsonSchema.additionalProperties)) delete jsonSchema.additionalProperties;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
  if (io === 'output' && jsonSchema.type === 'string') dropBounds(jsonSchema);
};

/** Whether it says only that there may be other fields, or that there are none: nothing about their values. */
const isOpenOrClosed = (rest: z.core.JSONSchema.BaseSchema['additionalProperties']): boolean =>
  rest === false || (typeof rest === 'object' && Object.keys(rest).length === 0);

/** Bounds on text are rules for requests. In answers they say nothing, and are a tenth of the document's size. */
const dropBounds = (jsonSchema: z.core.JSONSchema.BaseSchema): void => {
  delete jsonSchema.minLength;
  delete jsonSchema.maxLength;
  delete jsonSchema.pattern;
};

/** What a reference may contain apart from `$ref`. The generator also copies a part of its target. */
const REFERENCE_MEMBERS = ['$ref', 'description', 'example'];

/** Removes from references, and from the choices of a field, what their target contains. */
export function tidyReferences(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if ('$ref' in value)
    for (const name of Object.keys(value)) if (!REFERENCE_MEMBERS.includes(name)) Reflect.deleteProperty(value, name);
  // A field that can be null has its description outside of the choice, and again inside of it.
  if ('anyOf' in value && Array.isArray(value.anyOf) && 'description' in value)
    for (const option of value.anyOf) delete option.description;
  for (const child of Object.values(value)) tidyReferences(child);
}

/** Adds the shared components to the document. */
export function addComponents(
  document: OpenAPIV3_1.Document,
  { responses = {}, parameters = {}, links = {}, examples = {} }: OpenAPIV3_1.ComponentsObject,
): OpenAPIV3_1.Document {
  const schemas = sortedByName(extendSchemas({ ...document.components?.schemas, ...componentSchemas() }));
  return {
    ...document,
    components: {
      ...document.components,
      schemas,
      responses: sortedByName(responses),
      parameters: sortedByName(parameters),
      links: sortedByName(links),
      examples: { ...PROBLEM_EXAMPLES, ...sortedByName(examples) },
      headers: PUBLISHED_HEADERS,
    },
  };
}

/** Schemas that no operation answers with by itself. */
const FURTHER_SCHEMAS = z.union([
  Problem,
  ProblemFields,
  VerificationFields,
  CertificateFields,
  SettlementFields,
  StepMoment,
  EstimateFigures,
  EventEnvelope,
  SettlementEvent,
  ...Object.values(EXTENDED_PROBLEMS).map(({ schema }) => schema),
]);

function componentSchemas(): Record<string, OpenAPIV3_1.SchemaObject> {
  const made = createSchema(FURTHER_SCHEMAS, { io: 'output', openapiVersion: '3.1.0', opts: { override: tidySchema } });
  tidyReferences(made.components);
  return { ...VALIDATION_SCHEMAS, ...made.components } as Record<string, OpenAPIV3_1.SchemaObject>;
}

const sortedByName = <Value>(record: Record<string, Value>): Record<string, Value> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The headers that several operations answer with. The components have each once. */
export const PUBLISHED_HEADERS: Record<
  AnswerHeader | keyof typeof PAGE_HEADERS | 'X-Request-ID' | 'WWW-Authenticate' | 'RateLimit' | 'RateLimit-Policy',
  OpenAPIV3_1.HeaderObject
> = {
  'X-Request-ID': {
    description: "The id of the request: the caller's `X-Request-ID` if it is well-formed, otherwise a new one.",
    schema: { type: 'string' },
  },
  'WWW-Authenticate': { description: 'The credential that the operation takes.', schema: { type: 'string' } },
  'Retry-After': {
    description: 'Seconds to wait before the request is repeated. Absent if repeating it does not help.',
    schema: { type: 'integer', minimum: 1 },
  },
  ETag: { description: 'The SHA-256 of the bytes, in hex.', schema: { type: 'string' } },
  RateLimit: {
    description: 'What is left of the budget, and when it is full again (IETF RateLimit header fields).',
    schema: { type: 'string', example: '"default";r=0;t=12' },
  },
  'RateLimit-Policy': {
    description: 'The budget (IETF RateLimit header fields).',
    schema: { type: 'string', example: '"default";q=600;w=60' },
  },
  'X-Total-Count': { description: PAGE_HEADERS['X-Total-Count'].description, schema: { type: 'integer' } },
  Link: { description: PAGE_HEADERS.Link.description, schema: { type: 'string' } },
  Location: { description: 'The address of the object.', schema: { type: 'string' } },
  'Idempotency-Replayed': {
    description: '`true` if this is the stored answer of the first use of the key. Otherwise absent.',
    schema: { type: 'string', enum: ['true'] },
  },
  'Preference-Applied': {
    description: 'The wait that was applied (RFC 7240). Absent if the request asked for none.',
    schema: { type: 'string' },
  },
};

/** An example of each problem with members of its own. */
const PROBLEM_EXAMPLES: Record<string, OpenAPIV3_1.ExampleObject> = Object.fromEntries(
  ERROR_CODES.flatMap((code) => {
    const extended = EXTENDED_PROBLEMS[code];
    if (extended === undefined) return [];
    return [[code, { value: { ...problemOf(code, '/v2/settle', EXAMPLE_ID), ...extended.example } }]];
  }),
);

/** FastAPI's two schemas, without any difference: clients and checks compare them. */
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
