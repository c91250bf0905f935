/**
 * Time limits only end what hangs, and a busy machine takes longer for everything. So each limit of a test is stretched
 * by how much slower than alone this machine is when the run starts.
 */
import os from 'node:os';

/** The run's processes inherit what the first one has measured. */
const MEASURED = 'SETTLEMENT_TEST_SLOWNESS';
const SPIN_MS = 50;

/** By the load of the last minute, or by how long some processor time takes now, whichever is more. */
function measure(): number {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const spentMs = () => process.cpuUsage(before).user / 1_000;
  while (spentMs() < SPIN_MS);
  const [load = 0] = os.loadavg();
  return Math.max(1, load / os.availableParallelism(), (performance.now() - startedAt) / spentMs());
}

process.env[MEASURED] ??= String(measure());
const slowness = Number(process.env[MEASURED]);

/** This time limit for an idle machine, as it is for this one. */
export const stretched = (ms: number): number => Math.ceil(ms * slowness);

/** For `vi.waitFor` and `vi.waitUntil`. `expect.poll` waits as long without it (vitest.config.ts). */
export const WAIT = { timeout: stretched(30_000), interval: 100 } as const;

/** For tests of what goes by minutes, hours, days or months: one may end between two steps, and the next one begin. */
export const MINUTE_ENDS = { retry: 3 } as const;
