/** Sends requests with `fetch`, repeats them where that is safe, and turns refusals into errors. */
import { connectTimeout } from './connect.ts';
import {
  ApiError,
  ConnectionFailed,
  type ConnectionFault,
  ConnectTimeout,
  type Context,
  DeadlinePassed,
  type Fault,
  type Problem,
  type SettlementError,
  UnexpectedAnswer,
  ValidationFailed,
} from './error.ts';
import type { Intent } from './intent.ts';
import type { Method } from './operation.ts';
import {
  backoffMs,
  connectionFault,
  type Failure,
  FIRST_CONTACT_ATTEMPTS_MAX,
  limitAttempt,
  maybeDone,
  mayRetry,
  pause,
  RETRY_AFTER_MAX_MS,
  type RetryLimits,
  retryAfterSeconds,
} from './retry.ts';

/** Why a request is sent again, for your log. */
export type Retry = {
  readonly method: Method;
  readonly path: string;
  /** The number of the attempt that failed, from 1. */
  readonly attempt: number;
  readonly waitMs: number;
  readonly error: SettlementError;
};

export type TransportOptions = {
  readonly baseUrl: string;
  /** The headers that authenticate. */
  readonly credentials: () => Readonly<Record<string, string>> | undefined;
  readonly limits: RetryLimits;
  readonly fetch: typeof fetch;
  readonly onRetry: ((retry: Retry) => void) | undefined;
};

export type CallOptions = {
  /** For this call with all its attempts, instead of the client's own limit. */
  readonly timeoutMs?: number | undefined;
  /** Ends the call and its waits; the call then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
};

export type Call = CallOptions & {
  readonly method: Method;
  /** With the parameters filled in. */
  readonly path: string;
  readonly query?: object | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly intent?: Intent | undefined;
  /** Whether the API does the work once however often it is asked. */
  readonly isRepeatable: boolean;
  /** For one attempt. The call has at least so long. */
  readonly attemptTimeoutMs?: number | undefined;
  /** Of `performance.now()`, from which on the answer is of no use. Until then no limit ends the call. */
  readonly deadlineMs?: number | undefined;
};

export type RawAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** Of the creation that it answers. */
  readonly intent?: Intent | undefined;
};

export type Answer<T> = {
  readonly status: number;
  readonly headers: Headers;
  readonly data: T;
};

type Attempt = { readonly answer: RawAnswer } | { readonly failure: Failure; readonly error: SettlementError };

/**
 * @throws SettlementError when the API refused, or gave no answer within the limits; DeadlinePassed at the deadline;
 *   TypeError for a path that does not begin with `/`, or a value that no header can have
 */
export type Send = (call: Call) => Promise<RawAnswer>;

export function createTransport(options: TransportOptions): Send {
  const { limits, onRetry, baseUrl } = options;
  let hasAnswered = false;
  async function sendUntilAnswered(call: Call, unreachable: AbortSignal | undefined): Promise<RawAnswer> {
    const limitMs = Math.max(call.timeoutMs ?? limits.timeoutMs, call.attemptTimeoutMs ?? 0);
    const endMs = call.deadlineMs ?? performance.now() + limitMs;
    let earlier = false;
    for (let attempt = 1; ; attempt += 1) {
      call.signal?.throwIfAborted();
      const outcome = await attemptOnce(options, call, { leftMs: endMs - performance.now(), unreachable, earlier });
      hasAnswered ||= 'answer' in outcome || 'status' in outcome.failure;
      if ('answer' in outcome) return outcome.answer;
      const { failure, error } = outcome;
      earlier = error.maybeDone;
      if (unreachable?.aborted) throw new ConnectTimeout(baseUrl, limits.connectTimeoutMs, error);
      const askedSeconds = 'status' in failure ? failure.retryAfterSeconds : undefined;
      const waitMs = backoffMs(attempt, askedSeconds, Math.random);
      if (!mayRetry(failure, call.isRepeatable)) throw error;
      const isLate = performance.now() + waitMs >= endMs;
      if (call.deadlineMs === undefined) {
        const isTooLong = (askedSeconds ?? 0) * 1_000 > RETRY_AFTER_MAX_MS;
        const attemptsMax = hasAnswered ? limits.attemptsMax : Math.min(limits.attemptsMax, FIRST_CONTACT_ATTEMPTS_MAX);
        if (attempt >= attemptsMax || isTooLong || isLate) throw error;
      } else if (isLate) throw new DeadlinePassed(error);
      onRetry?.({ method: call.method, path: call.path, attempt, waitMs, error });
      await pause(waitMs, call.signal);
    }
  }
  return async function send(call) {
    // It would be a part of the host's name, such as in a stored intent that was altered. The key would go there.
    if (!call.path.startsWith('/')) throw new TypeError('A path begins with /.');
    // Another `fetch` may go by a way that only it knows.
    if (hasAnswered || options.fetch !== fetch) return await sendUntilAnswered(call, undefined);
    const ended = new AbortController();
    try {
      return await sendUntilAnswered(call, connectTimeout(baseUrl, limits.connectTimeoutMs, ended.signal));
    } finally {
      ended.abort();
    }
  };
}

type Circumstances = {
  readonly leftMs: number;
  readonly unreachable: AbortSignal | undefined;
  /** Whether the API may have carried out an attempt before this one. */
  readonly earlier: boolean;
};

async function attemptOnce(
  options: TransportOptions,
  call: Call,
  { leftMs, unreachable, earlier }: Circumstances,
): Promise<Attempt> {
  // What cannot be sent is the caller's fault. `fetch` would fail as it does when a connection is lost.
  const url = `${options.baseUrl}${call.path}${queryText(call.query)}`;
  const headers = new Headers(headersOf(options, call));
  const timeoutMs = Math.min(call.attemptTimeoutMs ?? options.limits.attemptTimeoutMs, leftMs);
  const limit = limitAttempt([call.signal, unreachable], timeoutMs);
  try {
    const response = await options.fetch(url, {
      method: call.method,
      headers,
      body: call.body ?? null,
      // The key would go to wherever a redirect leads. The API does not redirect.
      redirect: 'manual',
      signal: limit.signal,
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const answer = { status: response.status, headers: response.headers, bytes, intent: call.intent };
    // Without a body, to a caller that named the answer it has.
    const isUnchanged = response.status === 304;
    return response.ok || isUnchanged ? { answer } : refusal(answer, earlier);
  } catch (cause) {
    call.signal?.throwIfAborted();
    const fault: ConnectionFault = limit.isLate() ? 'timeout' : connectionFault(cause);
    const failure = { fault };
    const context = { cause, intent: call.intent, maybeDone: earlier || maybeDone(failure) };
    return { failure, error: new ConnectionFailed(fault, options.baseUrl, context) };
  } finally {
    limit.release();
  }
}

const headersOf = ({ credentials }: TransportOptions, { headers, body, intent }: Call): Record<string, string> => ({
  Accept: 'application/json',
  ...credentials(),
  ...(body !== undefined && { 'Content-Type': 'application/json' }),
  ...(intent && { 'Idempotency-Key': intent.idempotency_key }),
  ...headers,
});

function refusal(answer: RawAnswer, earlier: boolean): Attempt {
  const { status, headers, intent } = answer;
  const body = jsonOf(answer);
  const seconds = retryAfterSeconds(headers.get('Retry-After'), Date.now());
  const failed = (code: string | undefined, errorOf: (context: Context) => SettlementError): Attempt => {
    const failure = { status, ...(code !== undefined && { code }), retryAfterSeconds: seconds };
    return { failure, error: errorOf({ intent, maybeDone: earlier || maybeDone(failure) }) };
  };
  if (isProblem(body)) return failed(body.code, (context) => new ApiError(body, seconds, context));
  if (status === 422 && isFaultList(body)) {
    const requestId = headers.get('X-Request-ID') ?? undefined;
    return failed('validation', (context) => new ValidationFailed(body.detail, requestId, context));
  }
  return failed(undefined, (context) => new UnexpectedAnswer(status, context));
}

/** Undefined when the body is not JSON. */
function jsonOf({ bytes }: RawAnswer): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

/** A proxy may answer in JSON too, and with a `code` of its own. */
const isProblem = (body: unknown): body is Problem =>
  typeof body === 'object' &&
  body !== null &&
  'code' in body &&
  typeof body.code === 'string' &&
  'status' in body &&
  'request_id' in body;

const isFaultList = (body: unknown): body is { readonly detail: readonly Fault[] } =>
  typeof body === 'object' &&
  body !== null &&
  'detail' in body &&
  Array.isArray(body.detail) &&
  body.detail.every(isFault);

const isFault = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'loc' in value && Array.isArray(value.loc) && 'msg' in value;

/** The successes without a body. */
const BODILESS_STATUSES = [204, 304];

/**
 * The answer with its JSON. That the JSON has the promised form is the API's contract, and not checked here.
 *
 * @throws UnexpectedAnswer when the body is not JSON of an object or a list, which all the API's answers are
 */
export function withJson<T>(answer: RawAnswer): Answer<T> {
  const { status, headers, intent } = answer;
  const data = jsonOf(answer);
  if ((typeof data !== 'object' || data === null) && !BODILESS_STATUSES.includes(status))
    throw new UnexpectedAnswer(status, { intent, maybeDone: true });
  return { status, headers, data: data as T };
}

/** Lists become repeated parameters, objects become `name[key]=value`; what is undefined or null is left out. */
export function queryText(query: object | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (Array.isArray(value)) for (const one of value) parameters.append(name, String(one));
    else if (value instanceof Date) parameters.append(name, value.toISOString());
    else if (typeof value === 'object' && value !== null)
      for (const [key, one] of Object.entries(value)) parameters.append(`${name}[${key}]`, String(one));
    else if (value !== undefined && value !== null) parameters.append(name, String(value));
  }
  return parameters.size === 0 ? '' : `?${parameters}`;
}

/**
 * Fills the parameters of a path; each value stays within its segment.
 *
 * @throws TypeError for a value with which a URL is another path
 */
export const filledPath = (path: string, values: object = {}): string =>
  Object.entries(values).reduce((filled, [name, value]) => {
    if (['', '.', '..'].includes(String(value))) throw new TypeError(`${name} must be an id.`);
    return filled.replace(`{${name}}`, () => encodeURIComponent(String(value)));
  }, path);
