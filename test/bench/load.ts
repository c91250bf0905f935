/** Load by a fixed number of callers. Each makes its next call when the call before is answered. */
import { percentile } from './bench.ts';

export type Load = {
  readonly calls: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};

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
  return {
    calls: times.length,
    perSecond: times.length / tookSeconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
  };
}
