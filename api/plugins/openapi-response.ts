/**
 * The refusals that operations share (contract §2), as named responses of the OpenAPI document. An operation refers to
 * them: repeated in every operation they were two thirds of the document.
 */
import type { OpenAPIV3_1 } from 'openapi-types';
import { ERROR_TEXT, type ErrorCode } from '../../domain/error.ts';
import { EXTENDED_PROBLEMS } from '../schemas/problem.ts';

type Responses = Record<string, OpenAPIV3_1.ResponseObject>;

/** Headers of an answer with this status, beside the headers of every answer. */
export const STATUS_HEADERS: Record<string, readonly string[]> = {
  '304': ['ETag'],
  '401': ['WWW-Authenticate'],
  '429': ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  '503': ['Retry-After'],
};

/** Names that would be too long. */
const NAMES: Readonly<Record<string, string>> = {
  'credential_missing,credential_ambiguous,credential_invalid': 'ApiKeyRefused',
  'credential_missing,credential_invalid': 'SessionRefused',
};

const VALIDATION_FAILED = 'ValidationFailed';

/** Makes each response once, and answers with the reference to it. */
export function createSharedResponses() {
  const responses: Responses = {
    [VALIDATION_FAILED]: {
      description: 'Validation failed. All faults of the request are listed.',
      headers: headersOf('422'),
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/HTTPValidationError' },
          example: { detail: [{ loc: ['body', 'amount'], msg: 'Field required', type: 'missing' }] },
        },
      },
    },
  };
  const refer = (name: string): OpenAPIV3_1.ReferenceObject => ({ $ref: `#/components/responses/${name}` });
  return {
    validationFailed: () => refer(VALIDATION_FAILED),
    problem(status: string, codes: readonly ErrorCode[]): OpenAPIV3_1.ReferenceObject {
      const name = NAMES[codes.join()] ?? codes.map(pascalCase).join('Or');
      responses[name] ??= problemResponse(status, codes);
      return refer(name);
    },
    components: (): Responses => responses,
  };
}

export type SharedResponses = ReturnType<typeof createSharedResponses>;

/** `not_found` as `NotFound`. */
const pascalCase = (code: string): string =>
  code
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

export const headersOf = (status: string, own: readonly string[] = []): Record<string, OpenAPIV3_1.ReferenceObject> =>
  Object.fromEntries(
    ['X-Request-ID', ...(STATUS_HEADERS[status] ?? []), ...own].map((name) => [
      name,
      { $ref: `#/components/headers/${name}` },
    ]),
  );

/** A problem answer: its description lists the possible codes with their public texts. */
function problemResponse(status: string, codes: readonly ErrorCode[]): OpenAPIV3_1.ResponseObject {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_TEXT[code].detail}`).join('\n\n'),
    headers: headersOf(status),
    content: {
      'application/problem+json': {
        schema: problemSchema(codes),
        ...examplesOf(codes),
      },
    },
  };
}

/** Problems with members of their own. The others differ by the texts above only. */
function examplesOf(codes: readonly ErrorCode[]): Pick<OpenAPIV3_1.MediaTypeObject, 'examples'> {
  const extended = codes.filter((code) => EXTENDED_PROBLEMS[code] !== undefined);
  if (extended.length === 0) return {};
  return { examples: Object.fromEntries(extended.map((code) => [code, { $ref: `#/components/examples/${code}` }])) };
}

/** A code with members of its own has its own schema; the other codes share one. */
function problemSchema(codes: readonly ErrorCode[]): OpenAPIV3_1.SchemaObject | OpenAPIV3_1.ReferenceObject {
  const names = codes.map((code) => EXTENDED_PROBLEMS[code]?.schema.meta()?.id ?? 'Problem');
  const references = [...new Set(names)].map((name) => ({ $ref: `#/components/schemas/${name}` }));
  const [only, ...others] = references;
  return only !== undefined && others.length === 0 ? only : { anyOf: references };
}
