/** The errors of this client. Branch on the class, and for an `ApiError` on its `code`; the texts may change. */
import type { components } from './generated/openapi.ts';
import type { Intent } from './intent.ts';

type Schemas = components['schemas'];
type AnyProblem = Schemas['Problem'];
export type ProblemCode = AnyProblem['code'];

/** The problems that have more members than the common ones (contract §2). */
type ExtendedProblem = Schemas[
  | 'IdempotencyKeyReusedProblem'
  | 'LaunchGatesClosedProblem'
  | 'NotFoundProblem'
  | 'QuotaExceededProblem'
  | 'ScopeInsufficientProblem'
  | 'StateConflictProblem'];

type MembersOf<C extends ProblemCode> = C extends ExtendedProblem['code']
  ? Extract<ExtendedProblem, { readonly code: C }>
  : unknown;

/** The body of a refusal: RFC 9457, with the members of its code. */
export type Problem<C extends ProblemCode = ProblemCode> = AnyProblem & { readonly code: C } & MembersOf<C>;

/** One fault of an invalid request. `loc` is the way to the field, such as `['body', 'amount']`. */
export type Fault = components['schemas']['ValidationError'];

export type Context = {
  /** Of the creation that failed, so that it can be stored and repeated. It holds the body: treat it as a secret. */
  readonly intent?: Intent | undefined;
  readonly maybeDone?: boolean;
  readonly cause?: unknown;
};

/** Every error that this client throws by itself. */
export class SettlementError extends Error {
  readonly intent: Intent | undefined;
  /**
   * Whether the API may have carried out an attempt of this call, not only the one that failed last. Of an earlier call
   * with the same intent it says nothing: what that one did is not undone by this error. Until you know whether a
   * creation was carried out, send the same intent again, and never a new one.
   */
  readonly maybeDone: boolean;

  constructor(message: string, { intent, maybeDone = false, cause }: Context = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.maybeDone = maybeDone;
    // Not enumerable: a logger that prints the error's own fields must not print the body.
    Object.defineProperty(this, 'intent', { value: intent, enumerable: false });
  }
}

/** The API refused the last attempt. */
export class ApiError<C extends ProblemCode = ProblemCode> extends SettlementError {
  readonly status: number;
  readonly code: C;
  readonly problem: Problem<C>;
  /** Quote it when you report a fault. */
  readonly requestId: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(problem: Problem<C>, retryAfterSeconds: number | undefined, context?: Context) {
    super(`${problem.status} ${problem.code}: ${problem.detail} (request ${problem.request_id})`, context);
    this.status = problem.status;
    this.code = problem.code;
    this.problem = problem;
    this.requestId = problem.request_id;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * Whether the API refused with one of these codes. It also narrows `problem` to the extras of the code:
 *
 *   if (isApiError(error, 'state_conflict')) console.log(error.problem.current_state);
 */
export const isApiError = <C extends ProblemCode = ProblemCode>(
  error: unknown,
  ...codes: readonly C[]
): error is ApiError<C> =>
  error instanceof ApiError && (codes.length === 0 || codes.some((code) => code === error.code));

/** The request is not valid (422). Every fault is listed; no submitted value is repeated. */
export class ValidationFailed extends SettlementError {
  readonly status = 422;
  readonly faults: readonly Fault[];
  readonly requestId: string | undefined;

  constructor(faults: readonly Fault[], requestId: string | undefined, context?: Context) {
    super(`422: ${faults.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ')}`, context);
    this.faults = faults;
    this.requestId = requestId;
  }
}

/** There was no complete answer. `reason` is `not_connected` only if no attempt of the call was sent. */
export class ConnectionFailed extends SettlementError {
  readonly reason: ConnectionFault;

  constructor(fault: ConnectionFault, baseUrl: string, context: Context = {}) {
    const lost = `There is no connection to ${baseUrl} any more. The API may have carried out an earlier attempt.`;
    const isLost = fault === 'not_connected' && context.maybeDone;
    super(isLost ? lost : CONNECTION_TEXT[fault](baseUrl), context);
    this.reason = isLost ? 'connection_lost' : fault;
  }
}

export type ConnectionFault = 'not_connected' | 'connection_lost' | 'timeout';

/** The host neither opened nor refused a connection: its address is rather wrong. */
export class ConnectTimeout extends ConnectionFailed {
  constructor(baseUrl: string, timeoutMs: number, context?: Context) {
    super('timeout', baseUrl, context);
    this.message = `There was no connection to ${baseUrl} within ${timeoutMs / 1_000} s.`;
  }
}

const CONNECTION_TEXT: Record<ConnectionFault, (baseUrl: string) => string> = {
  not_connected: (baseUrl) => `There was no connection to ${baseUrl}; nothing was sent.`,
  connection_lost: (baseUrl) => `The connection to ${baseUrl} ended before the answer was complete.`,
  timeout: (baseUrl) => `${baseUrl} did not answer in time.`,
};

/** Something between this client and the API answered, such as a proxy. */
export class UnexpectedAnswer extends SettlementError {
  readonly status: number;

  constructor(status: number, context?: Context) {
    super(`The answer ${status} is not one of the API's.`, context);
    this.status = status;
  }
}

/** The call would be sent again, but its deadline comes first. `error` is how the last attempt ended. */
export class DeadlinePassed extends Error {
  readonly error: SettlementError;

  constructor(error: SettlementError) {
    super(error.message);
    this.error = error;
  }
}

/** The object did not reach a wanted state in time. `latest` is the object as it was read last. */
export class WaitTimeout<T extends { readonly status: string } = { readonly status: string }> extends SettlementError {
  readonly latest: T;

  constructor(latest: T, timeoutMs: number, cause?: SettlementError) {
    super(`After ${timeoutMs} ms the object was still ${latest.status}.`, { cause });
    this.latest = latest;
    // As `intent`: it holds personal data.
    Object.defineProperty(this, 'latest', { enumerable: false });
  }
}

export type VerificationFault =
  | 'missing_header'
  | 'malformed_timestamp'
  | 'timestamp_outside_tolerance'
  | 'no_matching_signature'
  | 'invalid_body';

/** A request to a webhook endpoint is not an event of the service. Answer it with 400. */
export class WebhookVerificationError extends SettlementError {
  readonly reason: VerificationFault;

  constructor(reason: VerificationFault) {
    super(`The webhook is not valid: ${reason}.`);
    this.reason = reason;
  }
}
