/** An activity that lasts: it heartbeats, so that a worker that died is noticed, and is told when to stop. */
import { asyncLocalStorage } from '@temporalio/activity';
import type { ActivityDeps } from './deps.ts';
import { withLinkedAbort } from './linked-abort.ts';

const HEARTBEAT_MS = 2_000;

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
