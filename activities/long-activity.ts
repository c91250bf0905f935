/** An activity that lasts: it heartbeats, so that a worker that died is noticed, and is told when to stop. */
import { asyncLocalStorage } from '@temporalio/activity';
import type { ActivityDeps } from './deps.ts';
import { withLinkedAbort } from './linked-abort.ts';

/**
 * Less than half of each heartbeat timeout, so that one slow call to Temporal does not give the activity to another
 * worker. The worker's options have it too: without it the SDK waits for four fifths of the timeout between two calls.
 */
export const HEARTBEAT_MS = 3_000;

/** @param run its signal is aborted when the process begins to stop, and when Temporal cancels the activity */
export async function whileHeartbeating<Result>(
  { stopping }: Pick<ActivityDeps, 'stopping'>,
  run: (stop: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const context = asyncLocalStorage.getStore();
  const heartbeat = context && setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    return await (context ? withLinkedAbort([stopping, context.cancellationSignal], run) : run(stopping));
  } finally {
    clearInterval(heartbeat);
  }
}
