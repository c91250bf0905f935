/**
 * The service on a clock that jumps: the API, a dispatcher and a worker over real PostgreSQL and a time-skipping
 * Temporal.
 */
import type { WorkflowHandle } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { vi } from 'vitest';
import { z } from 'zod';
import { createActivities } from '../../activities/index.ts';
import { startDispatcher } from '../../process/dispatcher.ts';
import { activityDeps } from '../support/activity.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';
import { startTimeSkipping, type TimeSkipping } from '../support/temporal.ts';

/** Where the runs of `withJumpingClock` say that operators read docs/operations.md. */
export const RUNBOOK_URL = 'https://runbook.example/operations.md';

/** The fixtures of `withApi`, `activities`, and `time`. The API and the activities read the clock of the workflows. */
export function withJumpingClock() {
  let nowMs = Date.now();
  let nudge = (): void => undefined;
  const deps = { now: () => new Date(nowMs), dispatcher: { nudge: () => nudge() } };
  return withApi({ deps })
    .extend('activities', FILE, ({ api, port }) =>
      createActivities({ ...activityDeps(api, `http://127.0.0.1:${port}`, deps.dispatcher), now: deps.now }),
    )
    .extend('time', FILE, async ({ api, activities }, { onCleanup }) => {
      const time = await startTimeSkipping(activities);
      const dispatcher = startDispatcher({
        db: api.connection.db,
        client: time.client,
        runbookUrl: RUNBOOK_URL,
        log: { info: () => undefined, warn: () => undefined },
      });
      nudge = dispatcher.nudge;
      onCleanup(async () => {
        await dispatcher.stop();
        await time.teardown();
      });
      nowMs = await time.now();
      const advance = async (ms: number): Promise<void> => {
        await time.advance(ms);
        nowMs = await time.now();
      };
      return { ...time, advance };
    });
}

/**
 * Waits until a workflow has set this many timers: then the clock may jump.
 *
 * @returns when the last one ends, in epoch milliseconds
 */
export async function untilTimers({ client }: TimeSkipping, workflowId: string, count = 1): Promise<number> {
  return await vi.waitUntil(async () => {
    const history = await client.workflow
      .getHandle(workflowId)
      .fetchHistory()
      .catch(() => undefined);
    const ends = (history?.events ?? []).flatMap(({ eventTime, timerStartedEventAttributes: timer }) =>
      timer ? [tsToMs(eventTime) + tsToMs(timer.startToFireTimeout)] : [],
    );
    return ends.length >= count && (ends.at(-1) ?? false);
  }, WAIT);
}

/** What Temporal UI shows of a run under "Current Details". */
export const detailsOf = async (handle: WorkflowHandle): Promise<string> =>
  Metadata.parse(await handle.query('__temporal_workflow_metadata')).currentDetails;

const Metadata = z.object({ currentDetails: z.string() });

/** A gate that an activity can be held at. */
export function createBarrier(): { readonly opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
