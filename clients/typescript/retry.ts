/** When a request may be sent again, and how long to wait before. */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectionFault } from './error.ts';

export type RetryLimits = {
  /** For one call with all its attempts and the waits between them. */
  readonly timeoutMs: number;
  /** For one attempt. */
  readonly attemptTimeoutMs: number;
  readonly attemptsMax: number;
  /** For a connection to be open: as long as nothing has answered this client, for all attempts of a call together. */
  readonly connectTimeoutMs: number;
};

export const RETRY_LIMITS: RetryLimits = {
  timeoutMs: 60_000,
  attemptTimeoutMs: 20_000,
  attemptsMax: 20,
  connectTimeoutMs: 10_000,
};

/** As long as nothing has answered this client, its address is rather wrong than down for a moment. */
export const FIRST_CONTACT_ATTEMPTS_MAX = 3;
/** A longer `Retry-After` is not waited for: the caller gets the error at once. */
export const RETRY_AFTER_MAX_MS = 30_000;
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 5_000;
const RETRY_AFTER_JITTER_MS = 250;
/** A timer of Node.js for a longer time, such as `Infinity`, ends at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1;

/** Statuses with which a proxy says that the API did not answer it. */
const PROXY_STATUSES = [502, 503, 504];

/** How one attempt ended without success. `code` is undefined when the answer is not a problem document. */
export type Failure =
  | { readonly fault: ConnectionFault }
  | { readonly status: number; readonly code?: string; readonly retryAfterSeconds?: number | undefined };

/**
 * @param isRepeatable whether the API does the work once however often it is asked: a read, a request with an
 *   idempotency key, or a command that the contract lets one repeat
 */
export function mayRetry(failure: Failure, isRepeatable: boolean): boolean {
  if ('fault' in failure) return isRepeatable || failure.fault === 'not_connected';
  // Refused before any work. A quota is not free again so soon.
  if (failure.status === 429) return failure.code !== 'quota_exceeded';
  if (failure.code !== undefined) return isRepeatable && failure.code === 'temporarily_unavailable';
  return isRepeatable && PROXY_STATUSES.includes(failure.status);
}

/** Refusals of the API itself with a status of 5xx, before any work. */
const REFUSED = ['launch_gates_closed', 'local_sandbox_only', 'provider_not_configured', 'remote_environment'];

/** Whether the API may have carried out an attempt that ended so. */
export function maybeDone(failure: Failure): boolean {
  if ('fault' in failure) return failure.fault !== 'not_connected';
  const { status, code } = failure;
  if (status === 429) return false;
  return code === undefined || (status >= 500 && !REFUSED.includes(code));
}

/**
 * The wait before the next attempt: exponential, and random between half and all of it, so that many clients do not
 * come back at the same moment. `Retry-After` is never undercut.
 *
 * @param attempt the number of the attempt that failed, from 1
 */
export function backoffMs(attempt: number, retryAfterSeconds: number | undefined, random: () => number): number {
  if (retryAfterSeconds !== undefined) return retryAfterSeconds * 1_000 + random() * RETRY_AFTER_JITTER_MS;
  const fullMs = Math.min(BACKOFF_FIRST_MS * 2 ** (attempt - 1), BACKOFF_MAX_MS);
  return fullMs / 2 + (random() * fullMs) / 2;
}

/** @throws the reason of the signal, when it ends the wait */
export async function pause(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(Math.min(waitMs, TIMER_MAX_MS), undefined, signal && { signal });
  } catch (cause) {
    // The timer throws an error of its own.
    signal?.throwIfAborted();
    throw cause;
  }
}

/** The limit of one attempt. */
export type AttemptLimit = {
  readonly signal: AbortSignal;
  /** Whether its time was over. */
  isLate(): boolean;
  /** To be called at the end of the attempt. */
  release(): void;
};

/**
 * Ends an attempt with each of these signals, and when its time is over. `AbortSignal.any` would do the same, but each
 * call of it leaves something at a caller's signal, for as long as that lives.
 */
export function limitAttempt(signals: readonly (AbortSignal | undefined)[], timeoutMs: number): AttemptLimit {
  const limit = new AbortController();
  let isLate = false;
  const end = (): void => {
    isLate = true;
    limit.abort(new DOMException('The time of the attempt is over.', 'TimeoutError'));
  };
  const timer = setTimeout(end, Math.max(1, Math.min(timeoutMs, TIMER_MAX_MS)));
  const followed = signals.flatMap((signal) => {
    if (signal === undefined) return [];
    const abort = (): void => limit.abort(signal.reason);
    if (signal.aborted) abort();
    // Many calls at once are no leak, of which Node.js would warn.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', abort, { once: true });
    return [() => signal.removeEventListener('abort', abort)];
  });
  return {
    signal: limit.signal,
    isLate: () => isLate,
    release: () => {
      clearTimeout(timer);
      for (const forget of followed) forget();
    },
  };
}

/** Seconds from a `Retry-After` header, which is a number or a date of HTTP; undefined when it is neither. */
export function retryAfterSeconds(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  if (/^[0-9]{1,9}$/.test(header)) return Number(header);
  const at = header.endsWith('GMT') ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, (at - nowMs) / 1_000);
}

/** Nothing was sent if the connection failed with one of these. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The code of an error about the host's certificate, which is checked before anything is sent. */
const REFUSED_CERTIFICATE = /^(?!ERR_SSL_).*(CERT|LEAF_SIGNATURE)/;

/** What an error of `fetch` means. */
export function connectionFault(error: unknown): ConnectionFault {
  const code = codeOf(error);
  return NOT_CONNECTED.has(code) || REFUSED_CERTIFICATE.test(code) ? 'not_connected' : 'connection_lost';
}

const codeOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
};
