/**
 * Sweeps for lost runs. A Temporal Schedule starts this workflow whenever none runs (process/sweep-schedule.ts). One
 * run is many sweeps, so that sweeps do not fill the list of workflows.
 */
import { sleep } from '@temporalio/workflow';
import type { SweepResult } from '../activities/sweep.ts';
import { remote } from './activities.ts';
import { SWEEP_INTERVAL, type SweepInput } from './contract.ts';
import { uncancelable } from './uncancelable.ts';

/** For a schedule that an earlier version made. */
const ONCE: SweepInput = { sweeps: 1 };

/** @returns what the last sweep did */
export const sweep = uncancelable(async ({ sweeps }: SweepInput = ONCE): Promise<SweepResult> => {
  const once = (): Promise<SweepResult> => remote('Start lost runs again').restartLostRuns({ nowMs: Date.now() });
  for (let done = 1; done < sweeps; done += 1) {
    await once();
    await sleep(SWEEP_INTERVAL, { summary: 'Until the next sweep' });
  }
  return await once();
});
