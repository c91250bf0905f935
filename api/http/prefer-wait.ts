/** `Prefer: wait=N` (RFC 7240) on reads: the answer waits, within bounds, for the object to change. */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';

const WAIT_SECONDS_MAX = 30;
const POLL_INTERVAL_MS = 150;
/** Waiting reads in this process; one more answers at once. */
const WAITERS_MAX = 256;

/** The wait that a Prefer header asks for, cut to the maximum; undefined when it asks for none that is valid. */
export function preferredWaitMs(prefer: string | string[] | undefined): number | undefined {
  const seconds = /(?:^|[,\s])wait=([0-9]{1,4})(?:$|[,;\s])/.exec([prefer ?? ''].flat().join(','))?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), WAIT_SECONDS_MAX) * 1_000;
}

type Versioned = { readonly version: number };

/**
 * @param app when it closes, those who wait are answered with what there is, so that none is cut off
 * @param isFinal what will never change is not waited for
 * @returns reads until the version differs from the first one read, the wait is over or the caller has gone
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
