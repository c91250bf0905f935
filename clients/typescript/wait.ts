/** Waits until an object has reached a state, by reads that the API holds back (`Prefer: wait`, contract §6). */
import { setTimeout as delay } from 'node:timers/promises';
import { WaitTimeout } from './error.ts';
import { retryAfterSeconds } from './retry.ts';
import type { Answer, CallOptions } from './transport.ts';

/** A settlement in one of these does not change its status again. */
export const TERMINAL_STATUSES = ['settled', 'rejected', 'expired', 'failed', 'canceled'] as const;

type WithStatus = { readonly status: string };

export type WaitOptions<T extends WithStatus> = CallOptions & {
  /** The statuses to wait for, or a test of the object. By default, its end. */
  readonly until?: readonly T['status'][] | ((object: T) => boolean) | undefined;
};

const WAIT_TIMEOUT_MS = 60_000;
/** The longest wait that the API grants. */
const READ_WAIT_SECONDS = 30;
/**
 * For other wishes than the end: a held read ends at the next change, and the change that is waited for may come just
 * before it. So the first holds after a change are short. At the end of an object no read is held.
 */
const FIRST_WAIT_SECONDS = 1;
const PAUSE_SECONDS = 1;
/** For the answer itself, beside the time that the API holds it back. */
export const ANSWER_MS = 10_000;

const isTerminal = ({ status }: WithStatus): boolean => TERMINAL_STATUSES.some((one) => one === status);

/**
 * @param read asks the API to hold the read back for so many seconds; 0 for an answer at once
 * @returns the object as soon as it is as wanted; with a list of statuses also when it has ended in another one
 * @throws WaitTimeout with the object as it was read last
 */
export async function waitFor<T extends WithStatus>(
  read: (waitSeconds: number, options: CallOptions) => Promise<Answer<T>>,
  { until = isTerminal, timeoutMs = WAIT_TIMEOUT_MS, signal }: WaitOptions<T> = {},
): Promise<T> {
  const isWanted =
    typeof until === 'function' ? until : (object: T) => until.includes(object.status) || isTerminal(object);
  const firstSeconds = until === isTerminal ? READ_WAIT_SECONDS : FIRST_WAIT_SECONDS;
  const endMs = performance.now() + timeoutMs;
  let holdSeconds = firstSeconds;
  for (let waitSeconds = 0; ; ) {
    const startMs = performance.now();
    const { data, headers } = await read(waitSeconds, { signal, timeoutMs: endMs - startMs + ANSWER_MS });
    if (isWanted(data)) return data;
    const hasChanged = performance.now() - startMs < waitSeconds * 1_000;
    holdSeconds = hasChanged || waitSeconds === 0 ? firstSeconds : Math.min(2 * holdSeconds, READ_WAIT_SECONDS);
    // The first read was not held. One that should be held comes at once if the object has ended, or too many wait.
    const isHeld = waitSeconds === 0 || (headers.has('Preference-Applied') && !isTerminal(data));
    const pauseMs = isHeld ? 0 : pauseOf(headers);
    const restMs = endMs - performance.now() - pauseMs;
    if (restMs <= 0) throw new WaitTimeout(data, timeoutMs);
    await delay(pauseMs, undefined, signal && { signal });
    waitSeconds = Math.min(holdSeconds, Math.ceil(restMs / 1_000));
  }
}

const pauseOf = (headers: Headers): number =>
  (retryAfterSeconds(headers.get('Retry-After'), Date.now()) ?? PAUSE_SECONDS) * 1_000;
