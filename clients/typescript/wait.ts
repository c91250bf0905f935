/** Waits until an object has reached a state, by reads that the API holds back (`Prefer: wait`, contract §6). */
import { DeadlinePassed, WaitTimeout } from './error.ts';
import { pause, retryAfterSeconds } from './retry.ts';
import type { Answer, CallOptions } from './transport.ts';

/** A settlement in one of these does not change its status again. */
export const TERMINAL_STATUSES = ['settled', 'rejected', 'expired', 'failed', 'canceled'] as const;

type WithStatus = { readonly status: string; readonly timeline?: readonly { readonly status: string }[] };

export type WaitOptions<T extends WithStatus> = CallOptions & {
  /**
   * The statuses to wait for, or a test of the object. By default, its end. A status that was passed between two reads
   * counts.
   */
  readonly until?: readonly T['status'][] | ((object: T) => boolean) | undefined;
};

/** A read of a wait ends with the wait; the first one as other calls do. */
export type ReadOptions = CallOptions & { readonly deadlineMs?: number };

/** What a held read waits for: an answer other than `seen`, or any change where the last answer had no `ETag`. */
export type Hold = { readonly seconds: number; readonly seen: string | null };

const WAIT_TIMEOUT_MS = 60_000;
/** The longest wait that the API grants. */
const HOLD_SECONDS = 30;
/** Without an `ETag`, a change between two reads is not noticed before the hold ends. So it is short. */
const UNTAGGED_HOLD_SECONDS = 1;
const PAUSE_SECONDS = 1;
/** For the answer itself, beside the time that the API holds it back. */
export const ANSWER_MS = 10_000;
/** However short the wait is, the first answer has so long. */
const FIRST_ANSWER_MS = 2_000;
const NOT_MODIFIED = 304;

const isTerminal = ({ status }: WithStatus): boolean => TERMINAL_STATUSES.some((one) => one === status);

/**
 * @param read asks the API to hold the read back; without a hold, for an answer at once
 * @returns the object as soon as it is, or has been, as wanted; with a list of statuses also when it has ended
 * @throws WaitTimeout with the object as it was read last; without any answer, the error of the read
 */
export async function waitFor<T extends WithStatus>(
  read: (hold: Hold | undefined, options: ReadOptions) => Promise<Answer<T>>,
  { until = isTerminal, timeoutMs = WAIT_TIMEOUT_MS, signal }: WaitOptions<T> = {},
): Promise<T> {
  const isWanted = typeof until === 'function' ? until : (object: T) => isTerminal(object) || hasReached(object, until);
  const endMs = performance.now() + timeoutMs;
  let { data: latest, headers } = await read(undefined, {
    signal,
    timeoutMs: Math.max(timeoutMs, FIRST_ANSWER_MS),
  });
  for (let pauseMs = 0; !isWanted(latest); ) {
    const restMs = endMs - performance.now() - pauseMs;
    if (restMs <= 0) throw new WaitTimeout(latest, timeoutMs);
    await pause(pauseMs, signal);
    const seen = headers.get('ETag');
    const longest = seen === null ? UNTAGGED_HOLD_SECONDS : HOLD_SECONDS;
    const hold = { seconds: Math.max(1, Math.min(longest, Math.floor(restMs / 1_000))), seen };
    const answer = await read(hold, { signal, deadlineMs: endMs }).catch((error: unknown) => {
      throw error instanceof DeadlinePassed ? new WaitTimeout(latest, timeoutMs, error.error) : error;
    });
    headers = answer.headers;
    if (answer.status !== NOT_MODIFIED) latest = answer.data;
    // The API does not hold a read if the object has ended, or if too many wait.
    pauseMs = headers.has('Preference-Applied') && !isTerminal(latest) ? 0 : pauseOf(headers);
  }
  return latest;
}

const hasReached = ({ status, timeline = [] }: WithStatus, statuses: readonly string[]): boolean =>
  [status, ...timeline.map((step) => step.status)].some((one) => statuses.includes(one));

const pauseOf = (headers: Headers): number =>
  (retryAfterSeconds(headers.get('Retry-After'), Date.now()) ?? PAUSE_SECONDS) * 1_000;
