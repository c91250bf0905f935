/** One sweep for lost runs, which a Temporal Schedule starts every few seconds (process/sweep-schedule.ts). */
import type { SweepResult } from '../activities/sweep.ts';
import { remote } from './activities.ts';
import { uncancelable } from './uncancelable.ts';

export const sweep = uncancelable(
  async (): Promise<SweepResult> => await remote('Start lost runs again').restartLostRuns({ nowMs: Date.now() }),
);
