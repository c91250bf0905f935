/**
 * The closed list of refusals (contract §2). The code is the contract, the title and the detail are its public text.
 * Only `api/http/error-handler.ts` knows the HTTP status of a code. In activities, a code is the type of a failure that
 * is not retried.
 */
export const ERROR_CODES = [
  'request_malformed',
  'credential_missing',
  'credential_ambiguous',
  'credential_invalid',
  'scope_insufficient',
  'organization_mismatch',
  'organization_suspended',
  'not_found',
  'method_not_allowed',
  'idempotency_key_reused',
  'state_conflict',
  'last_full_key',
  'provider_event_conflict',
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
  'rate_limited',
  'quota_exceeded',
  'headers_too_large',
  'remote_environment',
  'launch_gates_closed',
  'local_sandbox_only',
  'provider_not_configured',
  'temporarily_unavailable',
  'signature_invalid',
  'internal_error',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

type ErrorText = { readonly title: string; readonly detail: string };

/** The public texts, for the partner's developer: the cause, then the next step. */
export const ERROR_TEXT: Record<ErrorCode, ErrorText> = {
  request_malformed: {
    title: 'Request malformed',
    detail: 'The server could not read this as one HTTP request. The connection is closed.',
  },
  credential_missing: { title: 'Credential missing', detail: 'Send the credential that this operation needs.' },
  credential_ambiguous: {
    title: 'Credential ambiguous',
    detail: 'Send exactly one X-API-Key header with exactly one key.',
  },
  credential_invalid: {
    title: 'Credential invalid',
    detail: 'The credential is not valid in this environment. It may be mistyped, revoked, rotated or expired.',
  },
  scope_insufficient: {
    title: 'Scope insufficient',
    detail: 'The key is valid, but its scope does not cover this operation. Use a key with the required scope.',
  },
  organization_mismatch: {
    title: 'Organization mismatch',
    detail: "The body's org_id is not the key's organization. Leave it out: the key names it.",
  },
  organization_suspended: {
    title: 'Organization suspended',
    detail: 'The operator of the service suspended your organization. Reads are answered; nothing else is.',
  },
  not_found: { title: 'Not found', detail: 'There is no such object in your organization.' },
  method_not_allowed: {
    title: 'Method not allowed',
    detail: 'This address does not support this method. The Allow header lists the methods that it supports.',
  },
  idempotency_key_reused: {
    title: 'Idempotency key reused',
    detail: 'This key belongs to another command permanently. Use a new key for a new command.',
  },
  state_conflict: { title: 'State conflict', detail: "The object's state does not allow this." },
  last_full_key: {
    title: 'Last full key',
    detail: "This is the organization's last active key with scope full. Create another one first.",
  },
  provider_event_conflict: {
    title: 'Provider event conflict',
    detail: 'An event with this id was received before with different content.',
  },
  request_timeout: { title: 'Request timeout', detail: 'The request did not arrive completely in time.' },
  payload_too_large: { title: 'Payload too large', detail: 'The request body is larger than this operation accepts.' },
  unsupported_media_type: { title: 'Unsupported media type', detail: 'Send the body as application/json.' },
  headers_too_large: {
    title: 'Headers too large',
    detail: 'The address and the headers are larger than the server reads. The connection is closed.',
  },
  rate_limited: { title: 'Rate limited', detail: 'Too many requests. Wait for the time in the Retry-After header.' },
  quota_exceeded: {
    title: 'Quota exceeded',
    detail: 'Your organization has used up a quota. The member quota names it.',
  },
  remote_environment: {
    title: 'Remote environment',
    detail: 'Bank linking is simulated in the local sandbox only. This environment has no provider for it.',
  },
  launch_gates_closed: {
    title: 'Launch gates closed',
    detail: 'Value operations are closed here until every launch gate is open. Nothing was collected or stored.',
  },
  local_sandbox_only: {
    title: 'Local sandbox only',
    detail: 'This operation is a simulation and exists in the local sandbox only. Nothing was stored.',
  },
  provider_not_configured: {
    title: 'Provider not configured',
    detail: 'The provider behind this operation has no credentials in this environment. Nothing was stored.',
  },
  temporarily_unavailable: {
    title: 'Temporarily unavailable',
    detail:
      'The outcome could not be confirmed. Repeat a request that takes an Idempotency-Key with the same one: it is ' +
      'carried out once.',
  },
  signature_invalid: {
    title: 'Signature invalid',
    detail: 'The signature is missing, does not match the body, or its timestamp is outside the tolerance.',
  },
  internal_error: {
    title: 'Internal error',
    detail: 'Something failed on our side. Quote the request id when you report it.',
  },
};

/** More members of a problem, by their JSON names (contract §2). */
type ErrorExtras = Readonly<Record<string, unknown>>;

/** An expected refusal. The caller gets `detail` and `extras`, so they have no personal data. */
export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;
  /** A public sentence. By default, the text of the code. */
  readonly detail: string;
  /** When the same request may succeed; undefined if nobody knows. */
  readonly retryAt: Date | undefined;

  constructor(code: ErrorCode, extras: ErrorExtras = {}, detail: string = ERROR_TEXT[code].detail, retryAt?: Date) {
    super(`${code}: ${detail}`);
    this.name = 'DomainError';
    this.code = code;
    this.extras = extras;
    this.detail = detail;
    this.retryAt = retryAt;
  }
}

/** The service is available, but not to a caller who has so much under way. */
export class OwnBurstError extends DomainError {
  constructor(detail: string) {
    super('temporarily_unavailable', {}, detail);
  }
}

/** The object's state forbids it. */
export const stateConflict = (state: string, detail?: string, extras: ErrorExtras = {}): DomainError =>
  new DomainError('state_conflict', { current_state: state, ...extras }, detail);

/** A rule that a command breaks. Only the API knows which part of the request has the field. */
export type FieldFault = {
  /** The field's path in the command, `bank_details.routing_number`; null for a rule about the whole command. */
  readonly field: string | null;
  /** Completes a sentence about the field. It reaches the caller, so it never contains a submitted value. */
  readonly rule: string;
};

/** The rule of a field without which an object is not complete. */
export const REQUIRED = 'is required';

/** Rules across fields or stored objects that a command breaks, although each field alone is valid. */
export class ValidationError extends Error {
  readonly faults: readonly FieldFault[];

  constructor(faults: readonly FieldFault[]) {
    super(faults.map(({ field, rule }) => (field === null ? rule : `${field}: ${rule}`)).join('; '));
    this.name = 'ValidationError';
    this.faults = faults;
  }
}

/** @throws ValidationError when there is a fault */
export function requireNoFaults(faults: readonly FieldFault[]): void {
  if (faults.length > 0) throw new ValidationError(faults);
}
