/** `Prefer: wait=N` (RFC 7240) on reads: the answer waits until the object changes, at most `WAIT_SECONDS_MAX`. */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';

const WAIT_SECONDS_MAX = 30;
const POLL_INTERVAL_MS = 150;
/** Waiting reads in one process. A read beyond this number answers at once. */
const WAITERS_MAX = 256;

/** The wait that a Prefer header asks for, at most the maximum; undefined without a valid wait. */
export function preferredWaitMs(prefer: string | string[] | undefined): number | undefined {
  const seconds = /(?:^|[,\s])wait=([0-9]{1,4})(?:$|[,;\s])/.exec([prefer ?? ''].flat().join(','))?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), WAIT_SECONDS_MAX) * 1_000;
}

type Versioned = { readonly version: number };

/**
 * @param app when it closes, every waiting read is answered with the latest state
 * @param isFinal whether the object can no longer change; then the read does not wait
 * @returns reads until the version changes, the wait is over or the caller has disconnected
 */
export function createChangeWaiter<T extends Versioned>(
  app: Pick<FastifyInstance, 'addHook'>,
  isFinal: (value: T) => boolean,
) {
  let waiters = 0;
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
  });
  return async (request: FastifyRequest, read: () => Promise<T>, waitMs: number): Promise<T> => {
    const first = await read();
    if (waiters >= WAITERS_MAX) return first;
    const end = performance.now() + waitMs;
    let latest = first;
    waiters += 1;
    try {
      while (
        latest.version === first.version &&
        !isFinal(latest) &&
        performance.now() < end &&
        !request.raw.destroyed &&
        !closing
      ) {
        await delay(Math.min(POLL_INTERVAL_MS, Math.max(1, end - performance.now())));
        latest = await read();
      }
    } finally {
      waiters -= 1;
    }
    return latest;
  };
}
