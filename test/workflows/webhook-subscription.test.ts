/**
 * The runs of a subscription and of a lane. A subscription's retries on a clock that jumps: 27 hours and 35 minutes in a
 * few seconds.
 */
import { activityInfo } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { describe, expect, vi } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { type LaneReport, PENDING_COUNT_MAX, RETRY_DELAYS_MS, RETRY_JITTER } from '../../domain/webhook.ts';
import { laneWorkflowId, webhookSubscriptionWorkflowId } from '../../domain/workflow-id.ts';
import { createWorker } from '../../worker/worker.ts';
import { DELIVERY_TASK_QUEUE, laneReported, retriesAdded } from '../../workflows/contract.ts';
import { activityDeps } from '../support/activity.ts';
import { FILE, withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { stretched, WAIT } from '../support/patience.ts';
import { devServer, startTimeSkipping, testDevServer, testWorkflowBundle, workerConfig } from '../support/temporal.ts';
import { answered, ping, subscribe, untilDelivery } from '../support/webhook.ts';
import { createBarrier, detailsOf, untilTimers } from './fixture.ts';

/** A timer does not fire before it is due, and on a busy machine a little later. */
const SLACK_MS = stretched(5_000);

/** What the subscriber answers; each test sets it. */
let answer: GuardedAnswer;

const test = withApi()
  .extend('activities', FILE, ({ api }) =>
    createActivities({
      ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
      guardedHttp: { post: async () => answer },
    }),
  )
  .extend('time', FILE, async ({ activities }, { onCleanup }) => {
    const time = await startTimeSkipping(activities, DELIVERY_TASK_QUEUE);
    onCleanup(time.teardown);
    return time;
  })
  .extend('start', FILE, ({ api, partner, time }) => async () => {
    const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/hook');
    const delivery = await ping(api, partner, webhookId);
    // Without lanes here, the workflow makes the first attempt too.
    await api.connection.pool.query('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', [webhookId]);
    const handle = await time.client.workflow.start('webhookSubscription', {
      workflowId: webhookSubscriptionWorkflowId(webhookId),
      taskQueue: DELIVERY_TASK_QUEUE,
      args: [{ webhookId, orgId: partner.orgId }],
    });
    return {
      handle,
      webhookId,
      delivery,
      /** Makes the next retry due. */
      makeDue: () =>
        api.connection.pool.query('UPDATE webhook_deliveries SET next_attempt_at = now() WHERE webhook_id = $1', [
          webhookId,
        ]),
      untilDelivery: (isExpected: (read: Json) => boolean): Promise<Json> =>
        untilDelivery(api, partner, delivery, isExpected),
      /** The delivery once its attempt of this number has ended. */
      untilAttempts: (count: number): Promise<Json> =>
        untilDelivery(
          api,
          partner,
          delivery,
          ({ attempts }) => attempts.length === count && attempts.at(-1).outcome !== 'pending',
        ),
      rows: (): Promise<string[]> => rowsOf(handle),
    };
  });
// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(async ({ start: _ }) => void (await testDevServer()));
test.afterEach(({ time }) => time.restore());

/** What a round finds when nothing is left. */
const NOTHING = {
  nextAttemptAt: null,
  waiting: 0,
  status: 'enabled',
  disabledReason: null,
  failingSince: null,
  lastFailedAt: null,
  lastOutcome: null,
} as const;

/** The summaries in a run's history: operators see each round and each wait as a row. */
async function rowsOf(handle: WorkflowHandle): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  const summaries = (events ?? []).map(({ userMetadata }) => userMetadata?.summary?.data);
  return summaries.filter((data) => data != null).map((data) => String(JSON.parse(Buffer.from(data).toString())));
}

const ROUND = 'Deliver what is due';
const WAITING = 'Waiting until the next retry is due';

describe('a delivery that always fails', () => {
  test('makes each of its eight attempts when it is due and not before, and is exhausted after 27 h 35 min', async ({
    start,
    time,
  }) => {
    answer = answered(500);
    const { handle, untilAttempts, rows } = await start();
    let delivery = await untilAttempts(1);
    for (const [index, stepMs] of RETRY_DELAYS_MS.entries()) {
      const { at, duration_ms } = delivery.attempts[index];
      const dueMs = Date.parse(delivery.next_attempt_at);
      const waitMs = dueMs - Date.parse(at) - duration_ms;
      expect(Math.abs(waitMs - stepMs)).toBeLessThanOrEqual(stepMs * RETRY_JITTER);
      const waits = index + 1;
      await vi.waitUntil(async () => (await rows()).filter((row) => row === WAITING).length >= waits, WAIT);
      // The first wait is short, and a slow machine may see its end.
      if (index === 1)
        expect((await detailsOf(handle)).split('\n\n')).toEqual([
          'Subscription: **enabled**',
          'Waiting retries: **1**',
          expect.stringMatching(/^Failing since: \d{4}-/),
          `Next attempt at: ${delivery.next_attempt_at}`,
          'Last outcome: failed: http_status',
          expect.stringMatching(/^\*\*Next\*\*: Its endpoint fails\. Tell the partner\./),
          'docs/operations.md, "Alerts"',
        ]);
      await time.advance(Math.max(0, dueMs - (await time.now())) + SLACK_MS / 10);
      delivery = await untilAttempts(index + 2);
      const lateMs = Date.parse(delivery.attempts[index + 1].at) - dueMs;
      expect(lateMs).toBeGreaterThanOrEqual(0);
      expect(lateMs).toBeLessThanOrEqual(SLACK_MS);
    }
    expect(delivery).toMatchObject({ status: 'exhausted', next_attempt_at: null });
    await handle.result();
    const [first, last] = [delivery.attempts[0], delivery.attempts[7]];
    const totalMs = RETRY_DELAYS_MS.reduce((sum: number, step) => sum + step, 0);
    expect(Math.abs(Date.parse(last.at) - Date.parse(first.at) - totalMs)).toBeLessThan(totalMs * RETRY_JITTER);
    const expected = Array.from({ length: 8 }, () => [ROUND, WAITING]).flat();
    expect(await rows()).toEqual(expected.slice(0, -1));
  });
});

describe('a subscription that waits', () => {
  test('is delivered to at once when it is woken for an earlier retry', async ({ start }) => {
    answer = answered(500);
    const { handle, untilAttempts, makeDue } = await start();
    await untilAttempts(1);
    answer = answered(200);
    await makeDue();
    await handle.signal(retriesAdded);
    expect(await untilAttempts(2)).toMatchObject({ status: 'succeeded' });
    await handle.result();
  });

  test('makes no attempt before it is due when it is woken without cause', async ({ start, time }) => {
    answer = answered(500);
    const { handle, untilAttempts, untilDelivery: untilState, rows } = await start();
    const untilWaits = (count: number) =>
      vi.waitUntil(async () => (await rows()).filter((row) => row === WAITING).length >= count, WAIT);
    // The second retry is due after minutes, in which a slow machine wakes the run.
    await untilWaits(1);
    await time.advance(6_000);
    await untilWaits(2);
    await handle.signal(retriesAdded);
    await untilWaits(3);
    expect((await untilAttempts(2)).attempts).toHaveLength(2);
    answer = answered(200);
    await time.advance(6 * 60_000);
    expect(await untilState(({ status }) => status === 'succeeded')).toMatchObject({
      attempts: [{ number: 1 }, { number: 2 }, { number: 3 }],
    });
  });

  test('waits until its retry is due, however long the result of a round waited for a worker', async ({ time }) => {
    const waitMs = 3_600_000;
    let dueMs = 0;
    time.override.deliverRetries = async () => {
      dueMs = (await time.now()) + waitMs;
      await time.advance(4_000);
      return { waitMs, found: { ...NOTHING, waiting: 1, nextAttemptAt: new Date(dueMs).toISOString() } };
    };
    const handle = await time.client.workflow.start('webhookSubscription', {
      workflowId: webhookSubscriptionWorkflowId('late'),
      taskQueue: DELIVERY_TASK_QUEUE,
      args: [{ webhookId: 'late', orgId: 'any' }],
    });
    expect(Math.abs((await untilTimers(time, handle.workflowId)) - dueMs)).toBeLessThan(3_500);
    await handle.terminate();
  });

  test.for([
    [
      { status: 'disabled', disabledReason: 'failing', waiting: PENDING_COUNT_MAX },
      ['disabled** (failing)', `**${PENDING_COUNT_MAX} or more**`, 'PATCH /v1/webhooks/\\<id>.'],
    ],
    [{ status: 'deleted', waiting: 1 }, ['deleted**', '**1**', 'None: the partner deleted it.']],
    [{ status: 'enabled', waiting: 1 }, ['enabled**', '**1**', 'None: it works.']],
  ] as const)('shows what its last round found: %o', async ([found, shown], { time }) => {
    const nextAttemptAt = new Date((await time.now()) + 3_600_000).toISOString();
    time.override.deliverRetries = async () => ({ waitMs: 3_600_000, found: { ...NOTHING, ...found, nextAttemptAt } });
    const handle = await time.client.workflow.start('webhookSubscription', {
      workflowId: webhookSubscriptionWorkflowId(`shown-${found.status}`),
      taskQueue: DELIVERY_TASK_QUEUE,
      args: [{ webhookId: 'any', orgId: 'any' }],
    });
    await untilTimers(time, handle.workflowId);
    const details = (await detailsOf(handle)).split('\n\n');
    for (const [index, line] of [0, 1, 5].entries()) expect(details[line]).toContain(shown[index]);
    await handle.terminate();
  });

  test('has its round later, by itself, while its worker runs as many rounds as it may: slots stay free for lanes', async ({
    api,
    start,
    time,
  }) => {
    const leastMs = 500;
    const { opened, open } = createBarrier();
    const activityEnded = vi.fn();
    const limited = createActivities(
      {
        ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
        guardedHttp: { post: () => opened.then(() => answered(200)) },
        observer: { activityEnded, payoutCallFailed: () => undefined, deliveryTaken: () => undefined },
      },
      { deliverRetries: { atOnce: 1, comesAgainMs: [leastMs, leastMs * 2] } },
    );
    const triedMs = new Map<string, number[]>();
    time.override.deliverRetries = (input) => {
      triedMs.set(input.webhookId, [...(triedMs.get(input.webhookId) ?? []), performance.now()]);
      return limited.deliverRetries(input);
    };
    const first = await start();
    await first.untilDelivery(({ attempts }) => attempts.length === 1);
    const second = await start();
    const [waiting] = await vi.waitUntil(async () => {
      const { pendingActivities } = (await second.handle.describe()).raw;
      return pendingActivities?.some(({ lastFailure }) => lastFailure) && pendingActivities;
    }, WAIT);
    expect(waiting?.lastFailure?.applicationFailureInfo?.type).toBe('worker_busy');
    expect(activityEnded).not.toHaveBeenCalled();
    open();
    await first.handle.result();
    // The clock is not moved: once the server did not hand out a try that was due while its clock jumped.
    expect(await second.untilAttempts(1)).toMatchObject({ status: 'succeeded' });
    const tries = triedMs.get(second.webhookId) ?? [];
    const waitsMs = tries.slice(1).map((tryMs, index) => tryMs - (tries[index] ?? Number.NaN));
    expect(Math.min(...waitsMs)).toBeGreaterThan(leastMs * 0.9);
  });

  test('goes on when it is woken while a round ends, so that no wake-up is lost', async ({ start, time }) => {
    answer = answered(200);
    const { handle, webhookId } = await start();
    await handle.result();
    let isWoken = false;
    time.override.deliverRetries = async () => {
      if (!isWoken) await handle.signal(retriesAdded);
      isWoken = true;
      return { waitMs: null, found: NOTHING };
    };
    const again = await time.client.workflow.start('webhookSubscription', {
      workflowId: handle.workflowId,
      taskQueue: DELIVERY_TASK_QUEUE,
      args: [{ webhookId, orgId: 'any' }],
    });
    await again.result();
    expect(await rowsOf(again)).toEqual([ROUND, ROUND]);
  });
});

describe('the run of a lane', () => {
  test('shows what its activity reports, and ends when there are to be fewer lanes', async ({ time }) => {
    const { opened, open } = createBarrier();
    time.override.serveLane = async () => {
      await opened;
      return { isServed: false };
    };
    const handle = await time.client.workflow.start('webhookLane', {
      workflowId: laneWorkflowId(3),
      taskQueue: DELIVERY_TASK_QUEUE,
      args: [{ lane: 3 }],
    });
    const shownOf = async (report: LaneReport): Promise<string[]> => {
      await handle.signal(laneReported, report);
      return await vi.waitUntil(async () => {
        const details = await detailsOf(handle);
        return details.includes(report.at) && details.split('\n\n');
      }, WAIT);
    };
    const [at, later] = ['2026-11-27T10:00:00.000Z', '2026-11-27T10:01:00.000Z'];
    const slowest = [{ webhookId: 'whk_1', requests: 3, meanMs: 40 }];
    expect(await shownOf({ at, inFlight: 1, sent: 7, failed: 2, oldestDueAt: at, slowest })).toEqual([
      `In the minute before ${at}:`,
      'Requests: **7** sent, **2** failed; **1** in flight now',
      `Oldest delivery not taken yet, due: ${at}`,
      'Subscriptions that took longest:',
      '- `whk_1`: 3 requests, 40 ms each',
      expect.stringMatching(/^\*\*Next\*\*: Deliveries wait for this lane\./),
      'docs/operations.md, "Alerts"',
    ]);
    const idle = await shownOf({ at: later, inFlight: 0, sent: 0, failed: 0, oldestDueAt: null, slowest: [] });
    expect(idle.slice(2, 4)).toEqual([
      'Oldest delivery not taken yet, due: none',
      '**Next**: None: it takes what is due.',
    ]);
    open();
    await handle.result();
  });
});

// On the development server, which suggests it after two hundred events and not after four thousand.
test('the run of a subscription, and that of a lane, continue as a new run when Temporal suggests it: no history grows without end', async ({
  activities,
  onTestFinished,
}) => {
  const firstRunIds = new Map<unknown, string | undefined>();
  const calls: object[] = [];
  /** Whether the activity is called again: always in the first run, and not in the next one. */
  const isMore = (input: object): boolean => {
    const { workflowId, runId } = activityInfo().workflowExecution ?? {};
    if (!firstRunIds.has(workflowId)) firstRunIds.set(workflowId, runId);
    calls.push(input);
    return firstRunIds.get(workflowId) === runId && calls.length < 4_000;
  };
  const server = await devServer();
  const worker = await createWorker({
    config: { ...workerConfig(server), workerQueues: [DELIVERY_TASK_QUEUE] },
    activities: {
      ...activities,
      deliverRetries: async ({ nowMs: _, ...input }) =>
        isMore(input)
          ? { waitMs: 0, found: { ...NOTHING, nextAttemptAt: new Date().toISOString() } }
          : { waitMs: null, found: NOTHING },
      serveLane: async (input) => ({ isServed: isMore(input) }),
    },
    bundle: await testWorkflowBundle(),
    debugMode: true,
  });
  const running = worker.run();
  onTestFinished(async () => {
    worker.shutdown();
    await running;
    await worker.close();
    await server.close();
  });
  const taskQueue = DELIVERY_TASK_QUEUE;
  const subscription = { webhookId: 'long', orgId: 'any' };
  const { workflow } = server.client;
  await Promise.all([
    workflow.execute('webhookSubscription', {
      workflowId: webhookSubscriptionWorkflowId('long'),
      taskQueue,
      args: [subscription],
    }),
    workflow.execute('webhookLane', { workflowId: laneWorkflowId(3), taskQueue, args: [{ lane: 3 }] }),
  ]);
  expect(calls.length).toBeLessThan(4_000);
  // The new run has the input of the first one.
  expect(new Set(calls.map((input) => JSON.stringify(input)))).toEqual(
    new Set([subscription, { lane: 3 }].map((input) => JSON.stringify(input))),
  );
});
