/** The whole life of a delivery on a clock that jumps: 27 hours and 35 minutes in a few seconds. */
import { describe, expect, vi } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { RETRY_DELAYS_MS, RETRY_JITTER } from '../../domain/webhook.ts';
import { webhookDeliveryWorkflowId } from '../../domain/workflow-id.ts';
import {
  DELIVERY_TASK_QUEUE,
  placeFreed,
  retryRequested,
  subscriptionChanged,
  type WebhookDeliveryInput,
} from '../../workflows/contract.ts';
import { activityDeps } from '../support/activity.ts';
import { FILE, withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { startTimeSkipping } from '../support/temporal.ts';
import { ping, subscribe, untilDelivery } from '../support/webhook.ts';
import { WAIT } from './fixture.ts';

/** A timer does not fire before it is due, and on a busy machine a little later. */
const SLACK_MS = 5_000;

/** What the subscriber answers; each test sets it. */
let answer: GuardedAnswer;

const answered = (status: number): GuardedAnswer => ({
  status,
  error: status === 200 ? null : 'http_status',
  bytes: 0,
  sha256: Buffer.alloc(32),
  retryAfter: undefined,
  durationMs: 1,
});

const test = withApi()
  .extend('time', FILE, async ({ api }, { onCleanup }) => {
    const activities = createActivities({
      ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
      guardedHttp: { post: async () => answer },
    });
    const time = await startTimeSkipping(activities, DELIVERY_TASK_QUEUE);
    onCleanup(time.teardown);
    return time;
  })
  .extend('startDelivery', FILE, ({ api, partner, time }) => async () => {
    const webhook = await subscribe(api, partner, 'http://127.0.0.1:9999/hook');
    const delivery = await ping(api, partner, webhook.webhook_id);
    const input: WebhookDeliveryInput = {
      deliveryId: delivery.delivery_id,
      webhookId: webhook.webhook_id,
      orgId: partner.orgId,
      generation: 1,
    };
    const handle = await time.client.workflow.start('webhookDelivery', {
      workflowId: webhookDeliveryWorkflowId(delivery.delivery_id, 1),
      taskQueue: DELIVERY_TASK_QUEUE,
      args: [input],
    });
    return {
      handle,
      untilDelivery: (isExpected: (delivery: Json) => boolean): Promise<Json> =>
        untilDelivery(api, partner, delivery, isExpected),
      /** The delivery once its attempt of this number has ended. */
      untilAttempts: (count: number): Promise<Json> =>
        untilDelivery(
          api,
          partner,
          delivery,
          ({ attempts }) => attempts.length === count && attempts.at(-1).outcome !== 'pending',
        ),
      /** The summaries in the history: operators see each attempt and each wait as a row. */
      rows: async (): Promise<string[]> => {
        const { events } = await handle.fetchHistory();
        const summaries = (events ?? []).map(({ userMetadata }) => userMetadata?.summary?.data);
        return summaries.filter((data) => data != null).map((data) => String(JSON.parse(Buffer.from(data).toString())));
      },
    };
  });
// Starts the servers in a hook: its timeout is longer than a test's.
test.beforeAll(({ startDelivery: _ }) => undefined);
test.afterEach(({ time }) => time.restore());

describe('a delivery that always fails', () => {
  test('makes each of its eight attempts when it is due and not before, and is exhausted after 27 h 35 min', {
    timeout: 60_000,
  }, async ({ startDelivery, time }) => {
    answer = answered(500);
    const { handle, untilAttempts, rows } = await startDelivery();
    let delivery = await untilAttempts(1);
    for (const [index, stepMs] of RETRY_DELAYS_MS.entries()) {
      const { at, duration_ms } = delivery.attempts[index];
      const dueMs = Date.parse(delivery.next_attempt_at);
      const waitMs = dueMs - Date.parse(at) - duration_ms;
      expect(Math.abs(waitMs - stepMs)).toBeLessThanOrEqual(stepMs * RETRY_JITTER);
      await time.advance(Math.max(0, dueMs - (await time.now())) + SLACK_MS / 10);
      delivery = await untilAttempts(index + 2);
      const lateMs = Date.parse(delivery.attempts[index + 1].at) - dueMs;
      expect(lateMs).toBeGreaterThanOrEqual(0);
      expect(lateMs).toBeLessThanOrEqual(SLACK_MS);
    }
    expect(delivery).toMatchObject({ status: 'exhausted', next_attempt_at: null });
    expect(await handle.result()).toEqual({ status: 'exhausted' });
    const [first, last] = [delivery.attempts[0], delivery.attempts[7]];
    const totalMs = RETRY_DELAYS_MS.reduce((sum: number, step) => sum + step, 0);
    expect(Math.abs(Date.parse(last.at) - Date.parse(first.at) - totalMs)).toBeLessThan(totalMs * RETRY_JITTER);
    const expected = Array.from({ length: 8 }, (_, index) => [
      `Attempt ${index + 1} of 8`,
      `Waiting before attempt ${index + 2}`,
    ]).flat();
    expect(await rows()).toEqual(expected.slice(0, -1));
  });
});

describe('a delivery that waits', () => {
  test('makes its next attempt at once when a retry is requested', async ({ startDelivery }) => {
    answer = answered(500);
    const { handle, untilAttempts } = await startDelivery();
    await untilAttempts(1);
    answer = answered(200);
    await handle.signal(retryRequested);
    expect(await untilAttempts(2)).toMatchObject({ status: 'succeeded' });
    expect(await handle.result()).toEqual({ status: 'succeeded' });
  });

  test('does not attempt sooner when a signal does not concern it', async ({ startDelivery, time }) => {
    answer = answered(500);
    const { handle, untilAttempts, untilDelivery: untilState } = await startDelivery();
    await untilAttempts(1);
    await handle.signal(placeFreed);
    await handle.signal(subscriptionChanged);
    await time.advance(1_000);
    expect((await untilAttempts(1)).attempts).toHaveLength(1);
    answer = answered(200);
    await time.advance(6_000);
    expect(await untilState(({ status }) => status === 'succeeded')).toMatchObject({
      attempts: [{ number: 1 }, { number: 2 }],
    });
  });

  test('for a request slot uses it when it is signalled, and its wait was no attempt', async ({
    startDelivery,
    time,
  }) => {
    answer = answered(200);
    time.override.attemptDelivery = async () => {
      time.restore();
      return { status: 'pending', waitMs: 600_000, deferred: true };
    };
    const { handle, untilAttempts, rows } = await startDelivery();
    const waiting = 'Waiting for a free request slot of this subscription';
    // A signal that comes before the timer would end the wait before it begins.
    await vi.waitUntil(async () => (await rows()).includes(waiting), WAIT);
    await handle.signal(placeFreed);
    expect(await untilAttempts(1)).toMatchObject({ status: 'succeeded', attempts: [{ number: 1 }] });
    expect(await rows()).toEqual(['Attempt 1 of 8', waiting, 'Attempt 1 of 8']);
  });
});
