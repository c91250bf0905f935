/**
 * The typed proxies of the activities, and all their timeouts and retries. Every proxy waits until a canceled activity
 * has ended: by default a workflow continues while a canceled payout is still running.
 */
import {
  type ActivityOptions,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const WAIT = { cancellationType: 'WAIT_CANCELLATION_COMPLETED' } as const;

const RETRY = { initialInterval: 250, backoffCoefficient: 2, maximumInterval: 30_000 } as const;

const proxyRemote = (options: ActivityOptions) => proxyActivities<Activities>({ ...options, ...WAIT });
const proxyLocal = (options: LocalActivityOptions) => proxyLocalActivities<Activities>({ ...options, ...WAIT });

/**
 * A local activity that fails keeps one of the worker's slots for workflow tasks while it waits for its next retry. A
 * longer wait than this is a timer of the workflow instead, and the slot is free. The SDK's default is a minute: forty
 * failing workflows then stop a worker.
 */
const LOCAL_RETRY_THRESHOLD_MS = 2_000;

/** For one short transaction on PostgreSQL. It is retried until PostgreSQL answers. */
export const local = proxyLocal({
  startToCloseTimeout: 10_000,
  retry: RETRY,
  localRetryThreshold: LOCAL_RETRY_THRESHOLD_MS,
});

/** For work that calls other systems, or that operators should see as a row of its own under this summary. */
export const remote = (summary: string) => proxyRemote({ startToCloseTimeout: 15_000, retry: RETRY, summary });

/**
 * For a round of a subscription: it begins attempts for 5 minutes, and a request takes at most 15 s. A worker that died is
 * noticed by its missing heartbeat. The subscriber's answers are data, never a failure.
 */
export const round = (summary: string) =>
  proxyRemote({ startToCloseTimeout: 6 * 60_000, heartbeatTimeout: 10_000, retry: RETRY, summary });

/** For a lane's activity, which lasts for two hours at most. Another worker takes it over within seconds. */
export const lane = (summary: string) =>
  proxyRemote({
    startToCloseTimeout: 3 * 60 * 60_000,
    heartbeatTimeout: 8_000,
    retry: { ...RETRY, maximumInterval: 2_000 },
    summary,
  });
