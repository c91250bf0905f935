/** A subscription, what is sent to it, and how its subscriber answers: for tests of lanes and of its workflow. */
import { setTimeout as delay } from 'node:timers/promises';
import { vi } from 'vitest';
import type { Destinations } from '../../activities/destination.ts';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { webhookLaneActivities } from '../../activities/webhook-lane.ts';
import { type RetryResult, webhookSubscriptionActivities } from '../../activities/webhook-subscription.ts';
import type { Crash, CrashPoint } from '../../domain/crash-point.ts';
import { ALL_LANES, type LaneReport } from '../../domain/webhook.ts';
import { activityDeps } from '../support/activity.ts';
import type { TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { answered, ping, readDelivery, subscribe, writePings } from '../support/webhook.ts';

export type Sent = { readonly url: string; readonly body: Buffer; readonly headers: Readonly<Record<string, string>> };
export type Answer = (url: string) => Promise<GuardedAnswer>;
export const succeeding: Answer = async () => answered(200);
export const failing: Answer = async () => answered(500);

/** Answers after so long. `most`: how many requests were under way at the same time. */
export function slowly(given: GuardedAnswer, ms: number) {
  let atOnce = 0;
  const slow = {
    most: 0,
    answer: async () => {
      atOnce += 1;
      slow.most = Math.max(slow.most, atOnce);
      await delay(ms);
      atOnce -= 1;
      return given;
    },
  };
  return slow;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** Each test has an organization and a subscription of its own. */
export const test = withApi().extend('world', ({ api, onTestFinished }) => {
  // In the middle of the spread of retries.
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
  onTestFinished(() => random.mockRestore());
  return createWorld(api);
});

async function createWorld(api: TestApi) {
  const owner = await api.createCaller();
  const webhook: Json = await subscribe(api, owner, 'http://127.0.0.1:9999/hook');
  const path = `/v1/webhooks/${webhook.webhook_id}`;
  const call = (method: Parameters<typeof api.call>[1], below = '', body?: unknown) =>
    api.call(owner, method, `${path}${below}`, body);
  const rowsOf = async (text: string, ...values: unknown[]) => (await api.connection.pool.query(text, values)).rows;
  // Retries of earlier tests, which may be due by now, are not sent in this one.
  await rowsOf('UPDATE webhook_deliveries SET lane_key = NULL WHERE lane_key IS NOT NULL');
  const depsOf = (stopping: AbortSignal) => ({
    ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
    crash: (point: CrashPoint) => world.crash(point),
    stopping,
    now: () => new Date(Date.now() + world.aheadMs),
    observer: {
      activityEnded: () => undefined,
      payoutCallFailed: () => undefined,
      deliveryTaken: (seconds: number, waitedForEndpoint: boolean) =>
        void (waitedForEndpoint ? world.waited : world.late).push(seconds),
    },
    reportLane: async (_id: string, report: LaneReport) => void world.reports.push(report),
    guardedHttp: {
      post: async (url: string, body: Buffer, headers: Readonly<Record<string, string>>) => {
        world.sent.push({ url, body, headers });
        return await world.answer(url);
      },
    },
  });
  const world = {
    owner,
    webhook,
    /** The requests to the subscriber. */
    sent: [] as Sent[],
    /** By how many seconds first attempts began late. */
    late: [] as number[],
    /** As `late`, of those that waited for their endpoint. */
    waited: [] as number[],
    reports: [] as LaneReport[],
    /** Called at each crash point. */
    crash: ((_point) => undefined) as Crash,
    /** How the subscriber answers the next requests. */
    answer: succeeding,
    /** How far the clock of the sending process is ahead. */
    aheadMs: 0,
    /** The time of the subscription's workflow. */
    nowMs: Date.now(),
    /** A request to the subscription, or to what is below it. */
    call,
    subscribe: (url: string) => subscribe(api, owner, url),
    ping: (webhookId: string = webhook.webhook_id) => ping(api, owner, webhookId),
    /** So many pings, written in one transaction. */
    burst: (count: number, target: Target = { orgId: owner.orgId, webhookId: webhook.webhook_id }) =>
      writePings(api, count, target),
    redeliver: ({ delivery_id }: Json) => call('POST', `/deliveries/${delivery_id}/redeliver`).then(jsonOf),
    readDelivery: (delivery: Json) => readDelivery(api, owner, delivery),
    /** The subscription. */
    read: () => call('GET').then(jsonOf),
    rowsOf,
    /** Serves all lanes. @returns what stops them, as the end of their process does; it rejects if a lane failed */
    startLanes: (destinations?: Destinations) => {
      const stopping = new AbortController();
      const { serveLane } = webhookLaneActivities(depsOf(stopping.signal), destinations);
      const served = Promise.all(ALL_LANES.map((lane) => serveLane({ lane })));
      served.catch(() => undefined);
      return async () => {
        stopping.abort();
        return await served;
      };
    },
    /** Whether a lane is to send something now. */
    isDue: async (): Promise<boolean> =>
      (await rowsOf('SELECT 1 FROM webhook_deliveries WHERE lane_key IS NOT NULL AND next_attempt_at <= now() LIMIT 1'))
        .length > 0,
    /** Makes the retries of the subscription due. */
    makeDue: () =>
      rowsOf(
        `UPDATE webhook_deliveries SET next_attempt_at = now() WHERE webhook_id = $1 AND status = 'pending'`,
        webhook.webhook_id,
      ),
    /** Messages for the subscription's workflow. */
    messages: () => rowsOf('SELECT signal FROM outbox WHERE object_id = $1', webhook.webhook_id),
    /** Lets the lanes send all that is due. */
    deliver: async (): Promise<void> => {
      const stop = world.startLanes();
      await vi.waitUntil(async () => !(await world.isDue()), WAIT);
      await stop();
    },
    /** One round of the subscription's workflow. */
    round: (webhookId: string = webhook.webhook_id): Promise<RetryResult> =>
      webhookSubscriptionActivities(depsOf(new AbortController().signal)).deliverRetries({
        webhookId,
        orgId: owner.orgId,
        nowMs: world.nowMs,
      }),
    /** The workflow sends what is due, on its clock; first attempts as well. */
    attempt: async (): Promise<RetryResult> => {
      await rowsOf('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', webhook.webhook_id);
      return await world.round();
    },
  };
  return world;
}

type Target = { readonly orgId: string; readonly webhookId: string };
