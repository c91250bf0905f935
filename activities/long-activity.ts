/** An activity that lasts: it heartbeats, so that a worker that died is noticed, and is told when to stop. */
import { asyncLocalStorage } from '@temporalio/activity';
import type { ActivityDeps } from './deps.ts';
import { withLinkedAbort } from './linked-abort.ts';

/**
 * Less than half of any heartbeat timeout, so that one slow call does not give the activity to another worker. The
 * worker needs it too: else the SDK sends a heartbeat only after four fifths of the timeout.
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
