/**
 * The typed proxies of the activities, and all their timeouts and retries. Every proxy waits until a canceled activity
 * has ended: by default a workflow continues while a canceled payout is still running.
 */
import {
  ActivityFailure,
  type ActivityOptions,
  ApplicationFailure,
  isCancellation,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
  sleep,
  TemporalFailure,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const WAIT = { cancellationType: 'WAIT_CANCELLATION_COMPLETED' } as const;

const RETRY = { initialInterval: 250, backoffCoefficient: 2, maximumInterval: 30_000 } as const;

const proxyRemote = (options: ActivityOptions) => proxyActivities<Activities>({ ...options, ...WAIT });
const proxyLocal = (options: LocalActivityOptions) => proxyLocalActivities<Activities>({ ...options, ...WAIT });

const localActivities = proxyLocal({ startToCloseTimeout: 10_000, retry: { maximumAttempts: 1 } });

/** After an hour of failures, attempts are rarer: each adds six events, and Temporal ends a run with 51 200. */
const PATIENT_ATTEMPTS = 120;
/** Between attempts that have failed for long. */
const PATIENT_WAIT_MS = 5 * 60_000;

/**
 * Runs an activity that is one short transaction on PostgreSQL, and repeats it until PostgreSQL answers. The workflow
 * repeats it, not the SDK, which would give each repetition the input of the first: whether a wait is over is judged by
 * the workflow's time, and that goes on. Meanwhile none of the worker's slots for workflow tasks is kept.
 *
 * @param call calls one activity, and is called once for each attempt
 */
export async function local<Result>(call: (activities: typeof localActivities) => Promise<Result>): Promise<Result> {
  for (let attempt = 1, waitMs: number = RETRY.initialInterval; ; attempt += 1) {
    try {
      return await call(localActivities);
    } catch (error) {
      if (isPermanent(error)) throw error;
    }
    await sleep(attempt < PATIENT_ATTEMPTS ? waitMs : PATIENT_WAIT_MS);
    waitMs = Math.min(waitMs * RETRY.backoffCoefficient, RETRY.maximumInterval);
  }
}

/** The SDK throws the failure of a local activity itself, or as the cause of an `ActivityFailure`. */
function isPermanent(error: unknown): boolean {
  const failure = error instanceof ActivityFailure ? error.cause : error;
  if (!(failure instanceof TemporalFailure) || isCancellation(error)) return true;
  return failure instanceof ApplicationFailure && failure.nonRetryable === true;
}

/**
 * How long a timer runs that ends then. An activity returns the end of a wait: a duration would be too long by the time
 * for which the activity, or its result, waited for a worker. At least 1 ms: then each wait is one timer, also a late
 * one.
 */
export const untilMs = (endMs: number): number => Math.max(1, endMs - Date.now());

/** For work that calls other systems, or that operators should see as a row of its own under this summary. */
export const remote = (summary: string) => proxyRemote({ startToCloseTimeout: 15_000, retry: RETRY, summary });

/**
 * For a call that may be repeated for weeks, to a provider that many runs call: it is soon made every five minutes
 * only.
 */
export const patient = (summary: string) =>
  proxyRemote({ startToCloseTimeout: 15_000, retry: { ...RETRY, maximumInterval: PATIENT_WAIT_MS }, summary });

/** For a mail: its server may need half a minute to take it. */
export const mail = (summary: string) => proxyRemote({ startToCloseTimeout: 60_000, retry: RETRY, summary });

/**
 * For a round of a subscription: it begins attempts for 5 minutes, and a request takes at most 15 s. A worker that died
 * is noticed by its missing heartbeat. The subscriber's answers are data, never a failure.
 */
export const round = (summary: string) =>
  proxyRemote({ startToCloseTimeout: 6 * 60_000, heartbeatTimeout: 10_000, retry: RETRY, summary });

/** For a lane's activity, which lasts for two hours at most. Another worker takes it over within seconds. */
export const laneActivity = (summary: string) =>
  proxyRemote({
    startToCloseTimeout: 3 * 60 * 60_000,
    heartbeatTimeout: 8_000,
    retry: { ...RETRY, maximumInterval: 2_000 },
    summary,
  });
