/**
 * Turns errors into refusals, and has the status of every refusal (contract §2). The map is exhaustive: a new code
 * without a status does not compile. An unexpected error becomes 503 if the database was unreachable, and 500
 * otherwise. The answer does not contain its message.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { causeOf, isUnavailable } from '../../db/client.ts';
import { DomainError, ERROR_TEXT, type ErrorCode, OwnBurstError, ValidationError } from '../../domain/error.ts';
import { originForm, splitAddress } from './query-string.ts';
import { faultOfField, InvalidRequestError, type RequestFault } from './request-fault.ts';
import { requestFaults } from './validation.ts';

export const STATUS_OF: Record<ErrorCode, number> = {
  request_malformed: 400,
  credential_missing: 401,
  credential_ambiguous: 401,
  credential_invalid: 401,
  signature_invalid: 401,
  scope_insufficient: 403,
  organization_mismatch: 403,
  organization_suspended: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  idempotency_key_reused: 409,
  state_conflict: 409,
  last_full_key: 409,
  provider_event_conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  quota_exceeded: 429,
  headers_too_large: 431,
  internal_error: 500,
  remote_environment: 502,
  launch_gates_closed: 503,
  local_sandbox_only: 503,
  provider_not_configured: 503,
  temporarily_unavailable: 503,
};

/** A request that breaks its schema. The answer lists its faults and has no code. */
const INVALID_STATUS = 422;
/** Of a request whose caller went away, as nginx logs it. It is never sent. */
export const ABORTED_STATUS = 499;

/** `Retry-After` of `temporarily_unavailable`. */
const RETRY_AFTER_SECONDS = 2;

/** Errors that Fastify itself throws, by Fastify's codes. */
const FASTIFY_CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'request_timeout',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const cause = causeOf(error);
  if (error instanceof ValidationError) return sendFaults(reply, error.faults.map(faultOfField));
  if (error instanceof InvalidRequestError) return sendFaults(reply, error.faults);
  if (cause instanceof DomainError) return sendProblem(reply, request, cause);
  if (isFastifyError(error)) {
    if (error.validation) return sendFaults(reply, requestFaults(request));
    const code = FASTIFY_CODES[error.code];
    if (code) return sendProblem(reply, request, new DomainError(code));
  }
  // The error of a connection that the caller closed looks like one of the database's. Nobody reads this answer.
  if (request.raw.errored === error || request.raw.aborted)
    return sendProblem(reply, request, new DomainError('request_timeout'));
  if (isUnavailable(error)) {
    request.log.warn({ err: error }, 'the database was unreachable during a request');
    return sendProblem(reply, request, new DomainError('temporarily_unavailable'));
  }
  request.log.error({ err: error }, 'a request failed unexpectedly');
  return sendProblem(reply, request, new DomainError('internal_error'));
}

const sendFaults = (reply: FastifyReply, faults: readonly RequestFault[]): FastifyReply =>
  reply.code(INVALID_STATUS).type('application/json').send({ detail: faults });

function sendProblem(reply: FastifyReply, request: FastifyRequest, error: DomainError): FastifyReply {
  const status = STATUS_OF[error.code];
  request.refusal = error.code;
  request.isOwnBurst = error instanceof OwnBurstError;
  if (status === STATUS_OF.credential_missing) reply.header('WWW-Authenticate', challenge(request));
  const seconds = retryAfterSeconds(error);
  if (seconds !== undefined) reply.header('Retry-After', String(seconds));
  const instance = splitAddress(originForm(request.originalUrl)).path;
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ ...problemOf(error.code, instance, request.id, error.detail), ...error.extras });
}

/** The members of every problem (RFC 9457). @param instance the path of the request */
export const problemOf = (code: ErrorCode, instance: string, requestId: string, detail = ERROR_TEXT[code].detail) => ({
  type: `/problems/${code}`,
  title: ERROR_TEXT[code].title,
  status: STATUS_OF[code],
  detail,
  instance,
  code,
  request_id: requestId,
});

function retryAfterSeconds({ code, retryAt }: DomainError): number | undefined {
  if (code === 'temporarily_unavailable') return RETRY_AFTER_SECONDS;
  return retryAt && Math.max(1, Math.ceil((retryAt.getTime() - Date.now()) / 1_000));
}

function challenge(request: FastifyRequest): string {
  const auth = request.routeOptions.config.access?.auth;
  // The only operation without credentials that refuses one is the consumer's sign-in.
  if (auth === 'session' || auth === 'none') return 'Bearer realm="settlement"';
  return auth === 'signature' ? 'Signature realm="settlement"' : 'ApiKey realm="settlement", header="X-API-Key"';
}

const isFastifyError = (error: unknown): error is FastifyError =>
  error instanceof Error && 'code' in error && typeof error.code === 'string';
