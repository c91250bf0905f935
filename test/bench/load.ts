/** Load with a fixed number of callers, each of whom asks again as soon as it is answered. */
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from './bench.ts';

export type Load = { readonly perSecond: number; readonly p50Ms: number; readonly p99Ms: number };

export async function load(callers: number, durationMs: number, call: () => Promise<void>): Promise<Load> {
  const times: number[] = [];
  const startedMs = performance.now();
  const endMs = startedMs + durationMs;
  const caller = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const askedMs = performance.now();
      await call();
      times.push(performance.now() - askedMs);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const tookSeconds = (performance.now() - startedMs) / 1_000;
  return { perSecond: times.length / tookSeconds, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) };
}

/** Asks until it is so; the asking is part of what is measured, so it is rare. */
export async function untilTrue(
  what: string,
  isTrue: () => Promise<boolean>,
  { everyMs = 25, timeoutMs = 180_000 } = {},
): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`${what} did not happen within ${timeoutMs / 1_000} s`);
    await delay(everyMs);
  }
}
