/** The Temporal Schedule of the sweep for lost runs. */
import { ScheduleAlreadyRunning, type ScheduleOptions } from '@temporalio/client';
import { ApplicationFailure, ValueError } from '@temporalio/common';
import { SWEEP_ID } from '../domain/workflow-id.ts';
import { SWEEP_INTERVAL, type SweepInput, TASK_QUEUE } from '../workflows/contract.ts';
import type { TemporalClient } from './temporal.ts';

/** Of one run: ten minutes of them. While it runs, the schedule starts no other one. */
const SWEEPS = 30;
/** An earlier version cannot continue a run of this one: after a rollback it ends by itself. */
const RUN_TIMEOUT = '30 minutes';
/** After an outage of Temporal, one sweep is enough. */
const CATCHUP_WINDOW = '10 seconds';
const CALL_TIMEOUT_MS = 5_000;

const OPTIONS = {
  scheduleId: SWEEP_ID,
  spec: { intervals: [{ every: SWEEP_INTERVAL }] },
  action: {
    type: 'startWorkflow',
    workflowType: 'sweep',
    workflowId: SWEEP_ID,
    taskQueue: TASK_QUEUE,
    args: [{ sweeps: SWEEPS } satisfies SweepInput],
    workflowRunTimeout: RUN_TIMEOUT,
  },
  policies: { overlap: 'SKIP', catchupWindow: CATCHUP_WINDOW, pauseOnFailure: false },
} as const satisfies ScheduleOptions;

/** Creates the schedule if it is missing. */
export async function createSweepSchedule({ client }: Pick<TemporalClient, 'client'>): Promise<'created' | 'existing'> {
  try {
    await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => client.schedule.create(OPTIONS));
    return 'created';
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return 'existing';
    throw error;
  }
}

/** Creates the schedule, or makes it like this one. An operator's pause stays. */
export async function ensureSweepSchedule(temporal: Pick<TemporalClient, 'client'>): Promise<'created' | 'existing'> {
  if ((await createSweepSchedule(temporal)) === 'created') return 'created';
  const { client } = temporal;
  const { scheduleId, ...options } = OPTIONS;
  const handle = client.schedule.getHandle(scheduleId);
  await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
    try {
      await handle.update(({ state }) => ({ ...options, state }));
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      const { namespace } = client.options;
      const { schedule } = await client.workflowService.describeSchedule({ namespace, scheduleId });
      await handle.delete();
      const { paused, notes } = schedule?.state ?? {};
      await client.schedule.create({ ...OPTIONS, state: { paused: paused === true, note: notes ?? '' } });
    }
  });
  return 'existing';
}

/** An update reads the schedule's input first. Without the key that sealed it, no run could read its input either. */
const isUnreadable = (error: unknown): boolean => error instanceof ApplicationFailure || error instanceof ValueError;
