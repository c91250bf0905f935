/**
 * The refusals that operations share (contract §2), as named responses of the OpenAPI document. An operation refers to
 * them: repeated in every operation, they would be two thirds of the document.
 */
import type { OpenAPIV3_1 } from 'openapi-types';
import { ERROR_TEXT, type ErrorCode } from '../../domain/error.ts';
import { STATUS_OF } from '../http/error-handler.ts';
import { EXTENDED_PROBLEMS } from '../schemas/problem.ts';

type Responses = Record<string, OpenAPIV3_1.ResponseObject>;

/** Headers of an answer with this status, in addition to the headers of every answer. */
export const STATUS_HEADERS: Record<string, readonly string[]> = {
  '304': ['ETag'],
  '401': ['WWW-Authenticate'],
  '429': ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  '503': ['Retry-After'],
};

/** Names that would be too long. */
const NAMES: Readonly<Record<string, string>> = {
  'credential_missing,credential_ambiguous,credential_invalid': 'KeyRefused',
  'credential_missing,credential_invalid': 'SessionRefused',
  'scope_insufficient,organization_mismatch,organization_suspended': 'KeyNotAllowed',
  'scope_insufficient,organization_suspended': 'ScopeInsufficientOrSuspended',
  'idempotency_key_reused,state_conflict': 'KeyReusedOrStateConflict',
  'local_sandbox_only,temporarily_unavailable': 'LocalSandboxOnly',
  'launch_gates_closed,temporarily_unavailable': 'LaunchGatesClosed',
  'provider_not_configured,temporarily_unavailable': 'ProviderNotConfigured',
};

const INVALID = 'Invalid';

const READ = ['internal_error', 'temporarily_unavailable'] as const satisfies readonly ErrorCode[];
const COMMAND = ['request_timeout', 'payload_too_large', 'unsupported_media_type', ...READ] as const;

/**
 * Refusals that every operation of a kind can answer. An operation refers to all of them as its `default`. Probes are
 * never rate-limited.
 */
export const ALWAYS_POSSIBLE = {
  ReadFault: ['rate_limited', ...READ],
  CommandFault: ['rate_limited', ...COMMAND],
  ProbeFault: READ,
} as const satisfies Record<string, readonly ErrorCode[]>;
export type AlwaysPossible = keyof typeof ALWAYS_POSSIBLE;

/** Makes each response once, and returns the reference to it. */
export function createSharedResponses() {
  const responses: Responses = {
    [INVALID]: {
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
    invalid: () => refer(INVALID),
    problem(status: string, codes: readonly ErrorCode[]): OpenAPIV3_1.ReferenceObject {
      const name = NAMES[codes.join()] ?? codes.map(pascalCase).join('Or');
      responses[name] ??= problemResponse(status, codes);
      return refer(name);
    },
    /** Its description lists the statuses: a client that gets one without a description of its own finds it here. */
    always(name: AlwaysPossible): OpenAPIV3_1.ReferenceObject {
      responses[name] ??= alwaysResponse(ALWAYS_POSSIBLE[name]);
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

/** The headers of one answer, without those of every answer, which the description of the document names. */
export const headersOf = (status: string, own: readonly string[] = []): Record<string, OpenAPIV3_1.ReferenceObject> =>
  Object.fromEntries(
    [...(STATUS_HEADERS[status] ?? []), ...own].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );

function alwaysResponse(codes: readonly ErrorCode[]): OpenAPIV3_1.ResponseObject {
  const status = codes.includes('rate_limited') ? '429' : '503';
  const lines = codes.map((code) => `${STATUS_OF[code]} \`${code}\`: ${ERROR_TEXT[code].detail}`);
  return {
    ...problemResponse(status, codes),
    headers: headersOf(status, ['X-Request-ID']),
    description: `What every operation of this kind can answer:\n\n${lines.join('\n\n')}`,
  };
}

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
