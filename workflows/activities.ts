/**
 * The typed handles to the activities, and the only timeouts and retries of the code base. Every proxy waits for
 * cancellation to complete: by default a workflow goes on while a canceled payout is still running.
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

const remote = (options: ActivityOptions) => proxyActivities<Activities>({ ...options, ...WAIT });
const local = (options: LocalActivityOptions) => proxyLocalActivities<Activities>({ ...options, ...WAIT });

/** One short transaction on PostgreSQL, repeated until it is there. */
export const record = local({ startToCloseTimeout: 10_000, retry: RETRY });

/** Steps that operators should see as rows of their own, or that reach outside. */
export const visible = (summary: string) => remote({ startToCloseTimeout: 15_000, retry: RETRY, summary });

/** One request to a subscriber, which has half this time to answer; what it answers is data, never a failure. */
export const sending = (summary: string) => remote({ startToCloseTimeout: 30_000, retry: RETRY, summary });
