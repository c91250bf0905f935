/** A signal for a piece of work, which other signals abort, or a time limit. */
import { setMaxListeners } from 'node:events';

/**
 * Runs with a signal that is aborted by each of `signals`, and after `timeoutMs`. It is not `AbortSignal.any`: Node.js
 * 20 collects an `AbortSignal.timeout` that nothing else refers to as garbage before it fires, and each call leaves
 * something at a signal for as long as that lives.
 */
export async function withLinkedAbort<Result>(
  signals: readonly AbortSignal[],
  run: (signal: AbortSignal) => Promise<Result>,
  timeoutMs?: number,
): Promise<Result> {
  const linked = new AbortController();
  const abort = () => linked.abort();
  for (const signal of signals) {
    if (signal.aborted) abort();
    // Many pieces of work at once are no leak, of which Node.js would warn.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', abort, { once: true });
  }
  const timer = timeoutMs === undefined ? undefined : setTimeout(abort, timeoutMs);
  try {
    return await run(linked.signal);
  } finally {
    clearTimeout(timer);
    for (const signal of signals) signal.removeEventListener('abort', abort);
  }
}
