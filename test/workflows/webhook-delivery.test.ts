/** The whole life of a delivery on a clock of its own: 27 hours and 35 minutes in a few seconds. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { RETRY_JITTER, RETRY_STEPS_MS } from '../../domain/webhook.ts';
import { webhookDeliveryWorkflowId } from '../../domain/workflow-id.ts';
import {
  DELIVERY_TASK_QUEUE,
  placeFreed,
  retryRequested,
  type WebhookDeliveryInput,
} from '../../workflows/contract.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import type { Json } from '../support/partner.ts';
import { startTimeSkipping, type TimeSkipping } from '../support/temporal.ts';
import { ping, subscribe, untilDelivery } from '../support/webhook.ts';

/** A timer fires no earlier than it is due, and on a busy machine a little later. */
const SLACK_MS = 5_000;

let api: TestApi;
let time: TimeSkipping;
let caller: Caller;
let answer: GuardedAnswer;

beforeAll(async () => {
  api = await createTestApi();
  const base = createActivities({
    ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
    guardedHttp: { post: async () => answer },
  });
  time = await startTimeSkipping(base, DELIVERY_TASK_QUEUE);
  caller = await api.createCaller();
});
afterAll(async () => {
  await time.teardown();
  await api.close();
});

const answered = (status: number): GuardedAnswer => ({
  status,
  error: status === 200 ? null : 'http_status',
  bytes: 0,
  sha256: Buffer.alloc(32),
  retryAfter: undefined,
  durationMs: 1,
});

/** A delivery whose workflow runs on this clock. */
async function begin() {
  const webhook = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
  const delivery = await ping(api, caller, webhook.webhook_id);
  const input: WebhookDeliveryInput = {
    deliveryId: delivery.delivery_id,
    webhookId: webhook.webhook_id,
    orgId: caller.orgId,
    generation: 1,
  };
  const workflowId = webhookDeliveryWorkflowId(delivery.delivery_id, 1);
  const handle = await time.client.workflow.start('webhookDelivery', {
    workflowId,
    taskQueue: DELIVERY_TASK_QUEUE,
    args: [input],
  });
  const untilAttempts = (count: number): Promise<Json> =>
    untilDelivery(
      api,
      caller,
      delivery,
      ({ attempts }) => attempts.length === count && attempts.at(-1).outcome !== 'pending',
    );
  return { webhook, delivery, handle, untilAttempts };
}

/** Events of a history that operators see as rows: attempts and waits, by their summaries. */
async function rowsOf(handle: Awaited<ReturnType<typeof begin>>['handle']): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  const summaries = (events ?? []).map(({ userMetadata }) => userMetadata?.summary?.data);
  return summaries.filter((data) => data != null).map((data) => String(JSON.parse(Buffer.from(data).toString())));
}

describe('a delivery that always fails', () => {
  test('makes each of its eight attempts when it is due and not before, and is exhausted after 27 h 35 min', {
    timeout: 60_000,
  }, async () => {
    answer = answered(500);
    const { handle, untilAttempts } = await begin();
    let delivery = await untilAttempts(1);
    for (const [index, stepMs] of RETRY_STEPS_MS.entries()) {
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
    const totalMs = RETRY_STEPS_MS.reduce((sum: number, step) => sum + step, 0);
    expect(Math.abs(Date.parse(last.at) - Date.parse(first.at) - totalMs)).toBeLessThan(totalMs * RETRY_JITTER);
    const expected = Array.from({ length: 8 }, (_, index) => [
      `Attempt ${index + 1} of 8`,
      `Waiting before attempt ${index + 2}`,
    ]).flat();
    expect(await rowsOf(handle)).toEqual(expected.slice(0, -1));
  });
});

describe('a delivery that waits', () => {
  test('attempts at once when somebody asks for it, as the next of its schedule', async () => {
    answer = answered(500);
    const { handle, untilAttempts } = await begin();
    await untilAttempts(1);
    answer = answered(200);
    await handle.signal(retryRequested);
    expect(await untilAttempts(2)).toMatchObject({ status: 'succeeded' });
    expect(await handle.result()).toEqual({ status: 'succeeded' });
  });

  test('is not hurried by news that concerns it not', async () => {
    answer = answered(500);
    const { delivery, handle, untilAttempts } = await begin();
    await untilAttempts(1);
    await handle.signal(placeFreed);
    await handle.signal('subscriptionChanged');
    await time.advance(1_000);
    expect((await untilAttempts(1)).attempts).toHaveLength(1);
    answer = answered(200);
    await time.advance(6_000);
    expect(await untilDelivery(api, caller, delivery, ({ status }) => status === 'succeeded')).toMatchObject({
      attempts: [{ number: 1 }, { number: 2 }],
    });
  });

  test('for a place takes it when told of it, without having used an attempt', async () => {
    answer = answered(200);
    time.override.attemptDelivery = async () => {
      time.restore();
      return { status: 'pending', waitMs: 600_000, deferred: true };
    };
    const { handle, untilAttempts } = await begin();
    await expect.poll(() => Object.keys(time.override)).toEqual([]);
    await handle.signal(placeFreed);
    expect(await untilAttempts(1)).toMatchObject({ status: 'succeeded', attempts: [{ number: 1 }] });
    expect(await rowsOf(handle)).toEqual([
      'Attempt 1 of 8',
      'Waiting for a free request slot of this subscription',
      'Attempt 1 of 8',
    ]);
  });
});
