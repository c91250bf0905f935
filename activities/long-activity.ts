/** An activity that lasts: it heartbeats, so that a worker that died is noticed, and is told when to stop. */
import { asyncLocalStorage } from '@temporalio/activity';
import type { ActivityDeps } from './deps.ts';

const HEARTBEAT_MS = 2_000;

/** @param run its signal is aborted when the process begins to stop, and when Temporal cancels the activity */
export async function whileHeartbeating<Result>(
  { stopping }: Pick<ActivityDeps, 'stopping'>,
  run: (stop: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const context = asyncLocalStorage.getStore();
  const heartbeat = context && setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  // Not `AbortSignal.any`, which leaves something at `stopping` for as long as the process lives.
  const stop = new AbortController();
  const end = () => stop.abort();
  const signals = [stopping, ...(context ? [context.cancellationSignal] : [])];
  for (const signal of signals) {
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
  }
  try {
    return await run(stop.signal);
  } finally {
    clearInterval(heartbeat);
    for (const signal of signals) signal.removeEventListener('abort', end);
  }
}
