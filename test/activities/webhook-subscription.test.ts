/**
 * Deliveries by a lane and by the workflow of their subscription: run twice, crashed in between, or at a wrong moment;
 * and what follows from the results.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describe, expect, vi } from 'vitest';
import { createDestinations, type Destinations } from '../../activities/destination.ts';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { webhookLaneActivities } from '../../activities/webhook-lane.ts';
import { isSignedBy, signWebhook } from '../../activities/webhook-signature.ts';
import { type RetryResult, webhookSubscriptionActivities } from '../../activities/webhook-subscription.ts';
import { recordEvent } from '../../db/queries/event.ts';
import { deleteExpiredSecrets } from '../../db/queries/webhook.ts';
import { openClaimant } from '../../db/queries/webhook-attempt.ts';
import { exchangeDeliveries } from '../../db/queries/webhook-lane.ts';
import { LANE_KEYS, LANES, type LaneReport, RETRY_JITTER } from '../../domain/webhook.ts';
import { activityDeps } from '../support/activity.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { recordStatements } from '../support/statement-count.ts';
import { ping, readDelivery, subscribe } from '../support/webhook.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

type Sent = { readonly url: string; readonly body: Buffer; readonly headers: Readonly<Record<string, string>> };
type Answer = (url: string) => Promise<Partial<GuardedAnswer>>;

const OK: GuardedAnswer = {
  status: 200,
  error: null,
  bytes: 0,
  sha256: Buffer.alloc(32),
  retryAfter: undefined,
  durationMs: 5,
  lostMs: null,
};
const succeeding: Answer = async () => ({});
const failing: Answer = async () => ({ status: 500, error: 'http_status' });

/** Each test has an organization and a subscription of its own. */
const test = withApi().extend('world', async ({ api, onTestFinished }) => {
  const owner = await api.createCaller();
  const webhook: Json = await subscribe(api, owner, 'http://127.0.0.1:9999/hook');
  const call = (method: Parameters<typeof api.call>[1], url: string, body?: unknown) =>
    api.call(owner, method, url, body);
  // In the middle of the spread of retries.
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
  onTestFinished(() => random.mockRestore());
  const rowsOf = async (text: string, ...values: unknown[]) => (await api.connection.pool.query(text, values)).rows;
  // Retries of earlier tests, which may be due by now, are not sent in this one.
  await rowsOf('UPDATE webhook_deliveries SET lane_key = NULL WHERE lane_key IS NOT NULL');
  const depsOf = (stopping: AbortSignal) => ({
    ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
    stopping,
    reportLane: async (_id: string, report: LaneReport) => void world.reports.push(report),
    guardedHttp: {
      post: async (url: string, body: Buffer, headers: Readonly<Record<string, string>>) => {
        world.sent.push({ url, body, headers });
        return { ...OK, ...(await world.answer(url)) };
      },
    },
  });
  const world = {
    owner,
    webhook,
    /** The requests to the subscriber. */
    sent: [] as Sent[],
    reports: [] as LaneReport[],
    /** How the subscriber answers the next requests. */
    answer: succeeding,
    /** The time of the subscription's workflow. */
    nowMs: Date.now(),
    call,
    subscribe: (url: string) => subscribe(api, owner, url),
    ping: (webhookId: string = webhook.webhook_id) => ping(api, owner, webhookId),
    /** So many pings, written in one transaction. */
    burst: (count: number, { orgId, webhookId }: Target = { orgId: owner.orgId, webhookId: webhook.webhook_id }) =>
      api.connection.db.transaction(async (tx) => {
        for (let n = 0; n < count; n += 1) {
          await recordEvent(tx, {
            orgId,
            objectType: 'webhook',
            objectId: webhookId,
            type: 'webhook.ping',
            data: {},
            at: new Date(),
            requestId: 'burst',
          });
        }
      }),
    redeliver: ({ delivery_id, webhook_id }: Json) =>
      call('POST', `/v1/webhooks/${webhook_id}/deliveries/${delivery_id}/redeliver`).then(jsonOf),
    readDelivery: (delivery: Json) => readDelivery(api, owner, delivery),
    /** The subscription. */
    read: () => call('GET', `/v1/webhooks/${webhook.webhook_id}`).then(jsonOf),
    rowsOf,
    /** Serves all lanes. @returns what stops them, as the end of their process does; it rejects if a lane failed */
    startLanes: (destinations?: Destinations) => {
      const stopping = new AbortController();
      const { serveLane } = webhookLaneActivities(depsOf(stopping.signal), destinations);
      const served = Promise.all(Array.from({ length: LANES }, (_, lane) => serveLane({ lane })));
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
});

type Target = { readonly orgId: string; readonly webhookId: string };

/** Requests that are answered only by `release`. */
function held() {
  const releases: (() => void)[] = [];
  const answer: Answer = () => new Promise((resolve) => releases.push(() => resolve({})));
  return { answer, count: () => releases.length, release: () => releases.splice(0).map((release) => release()) };
}

describe('nothing is sent', () => {
  test('before the retry is due: the round says when it is', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    const { waitMs } = await world.attempt();
    expect(waitMs).toBeGreaterThan(3_000);
    expect(await world.round()).toMatchObject({ found: { waiting: 1, lastOutcome: null } });
    expect(world.sent).toHaveLength(1);
    const { next_attempt_at, attempts } = await world.readDelivery(delivery);
    expect(attempts).toMatchObject([{ number: 1, outcome: 'failed' }]);
    // By the delivery's own times: on a busy machine the round is later than the attempt.
    const delayMs = Date.parse(next_attempt_at) - Date.parse(attempts[0].at) - attempts[0].duration_ms;
    expect(delayMs).toBeGreaterThanOrEqual(5_000 * (1 - RETRY_JITTER) - 1);
    expect(delayMs).toBeLessThanOrEqual(5_000 * (1 + RETRY_JITTER) + 1);
  });

  test('to a disabled or deleted subscription, whose deliveries end', async ({ world }) => {
    const other = await world.subscribe('http://127.0.0.1:9999/other');
    const [disabled, canceled] = [await world.ping(), await world.ping(other.webhook_id)];
    await world.call('PATCH', `/v1/webhooks/${world.webhook.webhook_id}`, { status: 'disabled' });
    await world.call('DELETE', `/v1/webhooks/${other.webhook_id}`);
    expect(await world.readDelivery(disabled)).toMatchObject({ status: 'skipped', next_attempt_at: null });
    expect(await world.round()).toMatchObject({ waitMs: null, found: { status: 'disabled', waiting: 0 } });
    expect(await world.round(other.webhook_id)).toMatchObject({ waitMs: null, found: { status: 'deleted' } });
    await world.deliver();
    expect(world.sent).toEqual([]);
    const ids = [disabled.delivery_id, canceled.delivery_id];
    expect(
      await world.rowsOf('SELECT status FROM webhook_deliveries WHERE delivery_id = ANY ($1) ORDER BY status', ids),
    ).toEqual([{ status: 'canceled' }, { status: 'skipped' }]);
    expect(await world.rowsOf('SELECT 1 FROM webhook_attempts WHERE delivery_id = ANY ($1)', ids)).toEqual([]);
  });
});

describe('a lane', () => {
  test('has a bounded number of requests to one host over all subscriptions, and holds up no other host', async ({
    world,
  }) => {
    const crowded = [9_998, 9_998, 9_998].map((port, n) => world.subscribe(`http://127.0.0.1:${port}/${n}`));
    const other = await world.subscribe('http://127.0.0.1:9997/other');
    const targets = [...(await Promise.all(crowded)), other];
    const { answer, count, release } = held();
    world.answer = answer;
    for (const { webhook_id: webhookId } of targets) await world.burst(4, { orgId: world.owner.orgId, webhookId });
    const stop = world.startLanes(createDestinations(4));
    await vi.waitUntil(() => count() === 8, WAIT);
    await delay(300);
    const sentTo = (port: string) => world.sent.filter(({ url }) => new URL(url).port === port).length;
    expect([sentTo('9998'), sentTo('9997')]).toEqual([4, 4]);
    world.answer = succeeding;
    release();
    await vi.waitUntil(async () => !(await world.isDue()), WAIT);
    await stop();
    expect(world.sent).toHaveLength(16);
  });

  test('has four requests to a new subscription in flight, and sends the next when one is answered', async ({
    world,
  }) => {
    await world.burst(6);
    const { answer, count, release } = held();
    world.answer = answer;
    const stop = world.startLanes();
    await vi.waitUntil(() => count() === 4, WAIT);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(world.sent).toHaveLength(4);
    release();
    await vi.waitUntil(() => world.sent.length === 6, WAIT);
    release();
    await stop();
    expect(await world.isDue()).toBe(false);
  });

  test('has up to 32 requests in flight while the endpoint answers well, and one while it fails', async ({ world }) => {
    let atOnce = 0;
    let most = 0;
    const counted =
      (answer: Partial<GuardedAnswer>): Answer =>
      async () => {
        atOnce += 1;
        most = Math.max(most, atOnce);
        await new Promise((resolve) => setTimeout(resolve, 20));
        atOnce -= 1;
        return answer;
      };
    await world.burst(200);
    world.answer = counted({});
    await world.deliver();
    expect([most > 16, most <= 32]).toEqual([true, true]);
    world.answer = failing;
    await world.burst(1);
    await world.deliver();
    most = 0;
    await world.burst(6);
    world.answer = counted({ status: 500, error: 'http_status' });
    await world.deliver();
    expect(most).toBe(1);
  });

  test('serves many deliveries with one statement: one in a burst costs less than a tenth', async ({ world, api }) => {
    await world.burst(400);
    const statements = recordStatements(api.connection.pool);
    await world.deliver();
    expect(world.sent).toHaveLength(400);
    const own = statements().filter((text) => !text.startsWith('SELECT 1 FROM webhook_deliveries'));
    expect(own.length).toBeLessThan(40 + 4 * LANES);
  });

  test('sends the same bytes under the same id again, as the same attempt, after a crash', async ({ world }) => {
    const delivery = await world.ping();
    const { answer, count, release } = held();
    world.answer = answer;
    const stopDead = world.startLanes();
    await vi.waitUntil(() => count() === 1, WAIT);
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'pending' }]);
    world.answer = succeeding;
    await world.deliver();
    expect(world.sent[1]?.body).toEqual(world.sent[0]?.body);
    expect(world.sent[1]?.headers['webhook-id']).toBe(world.sent[0]?.headers['webhook-id']);
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'succeeded' }]);
    release();
    await stopDead();
  });

  test('takes all that another has left without a pause, also if its places are taken meanwhile', async ({
    world,
    api,
  }) => {
    await world.burst(40);
    const [keys, free] = [{ from: 0, to: LANE_KEYS }, new Map<string, number>()];
    const claimant = await openClaimant(api.connection.db);
    const claim = {
      claimant,
      takesOver: false,
      known: new Map(),
      keys,
      after: undefined,
      limit: 40,
      firstMax: 40,
      free,
    };
    expect((await exchangeDeliveries(api.connection.db, [], claim)).claimed).toHaveLength(40);
    world.answer = async () => {
      await delay(100);
      return {};
    };
    const startedMs = performance.now();
    await world.deliver();
    expect([world.sent.length, performance.now() - startedMs < 4_500]).toEqual([40, true]);
  });

  test('that comes back after another took over changes nothing that the other has recorded', async ({ world }) => {
    const delivery = await world.ping();
    let answerLate = (): void => undefined;
    world.answer = () =>
      new Promise((resolve) => {
        answerLate = () => resolve({ status: 500, error: 'http_status' });
      });
    const stopFrozen = world.startLanes();
    await vi.waitUntil(() => world.sent.length === 1, WAIT);
    world.answer = succeeding;
    await world.deliver();
    answerLate();
    await stopFrozen();
    expect(await world.readDelivery(delivery)).toMatchObject({
      status: 'succeeded',
      attempts: [{ number: 1, outcome: 'succeeded', response_status: 200 }],
    });
  });

  test('reaches the others while one organization has subscribers that hang', async ({ world, api }) => {
    for (let n = 0; n < 19; n += 1) {
      const { webhook_id: webhookId } = await world.subscribe('http://127.0.0.1:9999/hang');
      await world.burst(40, { orgId: world.owner.orgId, webhookId });
    }
    const hanging = held();
    world.answer = async (url) => (url.endsWith('/hang') ? await hanging.answer(url) : {});
    const stop = world.startLanes();
    await vi.waitUntil(() => hanging.count() === 19 * 4, WAIT);
    const other = await api.createCaller();
    const { webhook_id: webhookId } = await subscribe(api, other, 'http://127.0.0.1:9999/other');
    await world.burst(30, { orgId: other.orgId, webhookId });
    await vi.waitUntil(() => world.sent.filter(({ url }) => url.endsWith('/other')).length === 30, WAIT);
    expect(hanging.count()).toBe(19 * 4);
    await world.rowsOf(`UPDATE webhook_deliveries SET lane_key = NULL WHERE claimed_by = 0 AND lane_key IS NOT NULL`);
    hanging.release();
    await stop();
  });

  test('sends nothing twice and loses nothing when the database fails for a moment', async ({ world, api }) => {
    const { pool } = api.connection;
    const query: (...given: unknown[]) => Promise<unknown> = pool.query.bind(pool);
    const commits: Promise<unknown>[] = [];
    const broken = vi.spyOn(pool, 'query').mockImplementation(async (...given: unknown[]) => {
      const [statement, values] = given as [pg.QueryConfig, unknown[]];
      const isClaim = /^(exchange|take_over)_deliveries$/.test(statement.name ?? '');
      if (!isClaim || world.sent.length === 0 || commits.length > 1) return await query(...given);
      const client = await pool.connect();
      const commit = () => client.query('COMMIT').finally(() => client.release());
      await client.query('BEGIN');
      const result = await client.query(statement, values);
      if (!result.rows.some(({ deliveryId }) => deliveryId)) return await commit().then(() => result);
      // The answer is lost, and the second claim is committed after the lane has gone on.
      commits.push(commits.length === 0 ? commit() : delay(2_000).then(commit));
      throw Object.assign(new Error('lost'), { code: '08006' });
    });
    await world.burst(40);
    await world.deliver();
    broken.mockRestore();
    expect(await Promise.all(commits)).toHaveLength(2);
    const ids = world.sent.map(({ headers }) => headers['webhook-id']);
    expect([ids.length, new Set(ids).size]).toEqual([40, 40]);
    expect(
      await world.rowsOf(
        'SELECT status, attempt_count, count(*)::int FROM webhook_deliveries WHERE webhook_id = $1 GROUP BY 1, 2',
        world.webhook.webhook_id,
      ),
    ).toEqual([{ status: 'succeeded', attempt_count: 1, count: 40 }]);
  });

  test('gives a delivery whose secret no key opens to the workflow of its subscription, where the fault is seen', async ({
    world,
  }) => {
    const delivery = await world.ping();
    await world.rowsOf(`UPDATE webhooks SET secret_sealed = 'lost' WHERE webhook_id = $1`, world.webhook.webhook_id);
    await world.deliver();
    expect(world.sent).toEqual([]);
    expect(await world.messages()).toEqual([{ signal: 'retriesAdded' }]);
    await expect(world.round()).rejects.toThrow();
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'pending', attempt_count: 1 });
  });

  test('records a request that was lost with a kept connection, and the one that followed at once', async ({
    world,
  }) => {
    const delivery = await world.ping();
    world.answer = async () => ({ status: 500, error: 'http_status', lostMs: 7 });
    await world.deliver();
    const { attempts, attempt_count, next_attempt_at: next } = await world.readDelivery(delivery);
    expect([attempt_count, attempts]).toMatchObject([
      2,
      [
        { number: 1, outcome: 'failed', error: 'connection_lost', duration_ms: 7 },
        { number: 2, outcome: 'failed', error: 'http_status', duration_ms: 5 },
      ],
    ]);
    expect(Date.parse(attempts[1].at) - Date.parse(attempts[0].at)).toBe(7);
    // It takes no retry away: the next one follows after the first wait.
    expect(Date.parse(next) - Date.parse(attempts[1].at) - 5).toBe(5_000);
  });

  test('makes the first retry when it is due, so that a failure that passes starts no workflow', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    await world.deliver();
    world.answer = succeeding;
    await world.deliver();
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'pending', attempt_count: 1 });
    await world.makeDue();
    await world.deliver();
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'succeeded', attempt_count: 2 });
    expect([world.sent.length, await world.messages()]).toEqual([2, []]);
  });

  test('gives deliveries that failed twice to the workflow of their subscription, with one message for all', async ({
    world,
  }) => {
    world.answer = failing;
    await world.burst(3);
    await world.deliver();
    expect(await world.messages()).toEqual([]);
    await world.makeDue();
    await world.deliver();
    expect(await world.messages()).toEqual([{ signal: 'retriesAdded' }]);
    expect([await world.round(), world.sent.length]).toMatchObject([{ found: { waiting: 3 } }, 6]);
  });

  test('that no longer exists ends', async ({ api }) => {
    const { serveLane } = webhookLaneActivities(activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher));
    expect(await serveLane({ lane: LANES })).toEqual({ isServed: false });
  });

  test('reports what it did each minute, and nothing while it is idle', async ({ world }) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      await world.burst(3);
      const stop = world.startLanes();
      await vi.waitUntil(async () => !(await world.isDue()), WAIT);
      for (let n = 0; n < 4; n += 1) await vi.advanceTimersByTimeAsync(60_000);
      await vi.waitUntil(() => world.reports.length === 2, WAIT);
      await stop();
      const [busy, quiet] = world.reports.sort((a, b) => b.sent - a.sent);
      expect(busy).toMatchObject({ sent: 3, failed: 0, inFlight: 0, oldestDueAt: null });
      expect(busy?.slowest).toEqual([{ webhookId: world.webhook.webhook_id, requests: 3, meanMs: 5 }]);
      expect([quiet?.sent, world.reports.length]).toEqual([0, 2]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the retries of a subscription', () => {
  test('are sent one after the other while the endpoint fails', async ({ world }) => {
    world.answer = failing;
    await world.burst(6);
    await world.attempt();
    world.nowMs += 60_000;
    let atOnce = 0;
    let most = 0;
    world.answer = async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((resolve) => setTimeout(resolve, 5));
      atOnce -= 1;
      return { status: 500, error: 'http_status' };
    };
    world.sent.length = 0;
    await world.round();
    expect([world.sent.length, most]).toEqual([6, 1]);
  });

  test('are given to the lane as soon as one succeeds', async ({ world }) => {
    world.answer = failing;
    await world.burst(6);
    await world.attempt();
    world.nowMs += 60_000;
    world.answer = succeeding;
    world.sent.length = 0;
    expect(await world.round()).toMatchObject({ waitMs: null });
    expect([world.sent.length, await world.isDue()]).toEqual([1, true]);
    await world.deliver();
    expect(world.sent).toHaveLength(6);
  });
});

describe('a redelivery', () => {
  test('is made when the attempt fails, if it is requested during the last attempt', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    for (let n = 1; n < 8; n += 1) {
      await world.attempt();
      world.nowMs += DAY_MS / 2;
    }
    world.answer = async () => {
      if (world.sent.length === 8) await world.redeliver(delivery);
      return await (world.sent.length === 9 ? succeeding('') : failing(''));
    };
    await world.attempt();
    await world.deliver();
    const { status, attempts } = await world.readDelivery(delivery);
    expect(status).toBe('succeeded');
    expect(attempts.at(-1)).toMatchObject({ number: 9, outcome: 'succeeded' });
  });

  test('follows at once, not after the wait, if it is requested during an attempt', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = async () => {
      if (world.sent.length > 1) return await succeeding('');
      await world.redeliver(delivery);
      return await failing('');
    };
    await world.deliver();
    expect(await world.readDelivery(delivery)).toMatchObject({
      status: 'succeeded',
      attempts: [{ outcome: 'failed' }, { outcome: 'succeeded' }],
    });
  });

  test('of a delivery that waits for its retry is sent by the lane at once', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    await world.attempt();
    world.answer = succeeding;
    await world.redeliver(delivery);
    await world.deliver();
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'succeeded', attempt_count: 2 });
  });
});

describe('a failed attempt', () => {
  test.for([
    [503, '7', 7_350],
    [429, '100000', 10_000],
    [503, '1', 5_250],
    [500, '9', 5_000],
    [503, 'soon', 5_000],
  ] as const)('%i with Retry-After %s waits %i ms', async ([status, retryAfter, waitMs], { world }) => {
    world.answer = async () => ({ status, error: 'http_status', retryAfter });
    const delivery = await world.ping();
    world.nowMs = Date.now() + 1_000;
    await world.attempt();
    const { next_attempt_at, attempts } = await world.readDelivery(delivery);
    const [{ at, duration_ms }] = attempts;
    expect(Date.parse(next_attempt_at) - Date.parse(at) - duration_ms).toBe(waitMs);
  });

  test('the eighth failure exhausts the delivery', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    for (let n = 1; n <= 8; n += 1) {
      await world.attempt();
      expect(await world.readDelivery(delivery)).toMatchObject({ status: n === 8 ? 'exhausted' : 'pending' });
      world.nowMs += DAY_MS / 2;
    }
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'exhausted', next_attempt_at: null });
  });

  test('410 disables the subscription and skips pending deliveries, its own as well', async ({ world }) => {
    await world.burst(20);
    // Not asked for, so that none is sent to a disabled subscription.
    world.answer = async () => ({ status: 410, error: 'http_status' });
    await world.deliver();
    expect(await world.round()).toMatchObject({ waitMs: null, found: { status: 'disabled', disabledReason: 'gone' } });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    const statuses = await world.rowsOf(
      'SELECT DISTINCT status FROM webhook_deliveries WHERE webhook_id = $1',
      world.webhook.webhook_id,
    );
    expect(statuses).toEqual([{ status: 'skipped' }]);
    // Some more may be under way by then.
    expect(world.sent.length).toBeLessThan(20);
  });

  test('five days of failures disable the subscription, whichever deliveries failed', async ({ world }) => {
    world.answer = failing;
    const startMs = world.nowMs;
    for (const days of [0, 0.9, 1.8, 2.7, 3.6, 4.5, 5 - 0.001]) {
      world.nowMs = startMs + days * DAY_MS;
      await world.ping();
      await world.attempt();
    }
    expect(await world.read()).toMatchObject({ status: 'enabled' });
    world.nowMs = startMs + 5 * DAY_MS + 60_000;
    const last = await world.ping();
    await world.attempt();
    expect(await world.readDelivery(last)).toMatchObject({ status: 'skipped' });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
  });

  test.for([
    ['a day without an attempt', {}, 1.1 * DAY_MS],
    ['another address', { url: 'https://other.example/hook' }, 0],
  ] as const)('%s begins the five days again', async ([_case, change, pauseMs], { world }) => {
    world.answer = failing;
    const startMs = world.nowMs;
    for (const days of [0, 0.9, 1.8, 2.7, 3.6, 4.5]) {
      world.nowMs = startMs + days * DAY_MS;
      await world.ping();
      await world.attempt();
    }
    await world.call('PATCH', `/v1/webhooks/${world.webhook.webhook_id}`, change);
    world.nowMs = startMs + 5.1 * DAY_MS + pauseMs;
    await world.ping();
    await world.attempt();
    expect(await world.read()).toMatchObject({ status: 'enabled' });
  });

  test('one success in five days keeps it enabled, and enabling it restarts the count', async ({ world }) => {
    const attempt = async (answer: Answer): Promise<void> => {
      await world.ping();
      world.answer = answer;
      await world.attempt();
    };
    await attempt(failing);
    world.nowMs += 3 * DAY_MS;
    await attempt(succeeding);
    await attempt(failing);
    world.nowMs += 3 * DAY_MS;
    await attempt(failing);
    expect(await world.read()).toMatchObject({ status: 'enabled' });
    for (const status of ['disabled', 'enabled'])
      await world.call('PATCH', `/v1/webhooks/${world.webhook.webhook_id}`, { status });
    world.nowMs += 3 * DAY_MS;
    await attempt(failing);
    expect(await world.read()).toMatchObject({ status: 'enabled' });
  });
});

describe('the signatures of a delivery', () => {
  test('match the published test vector', () => {
    const secret = Buffer.from('plJ3nmyCDGBKInavdOK15jsl', 'base64');
    const content = {
      id: 'msg_loFOjxBNrRLzqYUf',
      timestamp: 1_731_705_121,
      body: Buffer.from('{"event_type":"ping","data":{"success":true}}'),
    };
    const signature = 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=';
    expect(signWebhook([secret], content)).toBe(signature);
    expect(isSignedBy(secret, `v1,AAAA ${signature}`, content)).toBe(true);
    expect(isSignedBy(secret, signature, { ...content, timestamp: content.timestamp + 1 })).toBe(false);
    expect(isSignedBy(Buffer.alloc(24), signature, content)).toBe(false);
  });

  test('are those of the moment, while the same lane sends before and after a rotation', async ({ world }) => {
    const stop = world.startLanes();
    const send = async (count: number): Promise<Sent | undefined> => {
      await world.ping();
      await vi.waitUntil(() => world.sent.length === count, WAIT);
      return world.sent.at(-1);
    };
    await send(1);
    const { secret } = await jsonOf(await world.call('POST', `/v1/webhooks/${world.webhook.webhook_id}/rotate-secret`));
    const request = await send(2);
    await stop();
    const signatures = request?.headers['webhook-signature']?.split(' ') ?? [];
    const verified = [secret, world.webhook.secret].map((own, nth) =>
      new StandardWebhook(own).verify(request?.body.toString() ?? '', {
        ...request?.headers,
        'webhook-signature': signatures[nth] ?? '',
      }),
    );
    expect([verified.length, signatures.length]).toEqual([2, 2]);
  });

  test('use each earlier secret for 24 hours after its own rotation, the newest secret first', async ({
    api,
    world,
  }) => {
    const rotate = async (): Promise<string> =>
      jsonOf(await world.call('POST', `/v1/webhooks/${world.webhook.webhook_id}/rotate-secret`)).secret;
    const secrets: string[] = [world.webhook.secret];
    for (let n = 0; n < 3; n += 1) secrets.unshift(await rotate());
    const at = Date.now();
    // The secrets end an hour after each other, the oldest first.
    await world.rowsOf(
      `UPDATE webhook_earlier_secrets s SET expires_at = $2::timestamptz + place * interval '1 hour' FROM (
        SELECT secret_id, row_number() OVER (ORDER BY secret_id) AS place FROM webhook_earlier_secrets WHERE webhook_id = $1
      ) placed WHERE placed.secret_id = s.secret_id`,
      world.webhook.webhook_id,
      new Date(at).toISOString(),
    );
    for (const hours of [0.5, 1, 2, 3]) {
      world.nowMs = at + hours * HOUR_MS;
      await world.ping();
      await world.attempt();
    }
    const verify = (secret: string, { body, headers }: Sent, signature: string) =>
      new StandardWebhook(secret).verify(body.toString(), { ...headers, 'webhook-signature': signature });
    for (const [place, request] of world.sent.entries()) {
      const signatures = request.headers['webhook-signature']?.split(' ') ?? [];
      expect(signatures).toHaveLength(4 - place);
      for (const [nth, signature] of signatures.entries())
        expect(verify(secrets[nth] ?? '', request, signature)).toMatchObject({ type: 'webhook.ping' });
    }
    const expire = () => deleteExpiredSecrets(api.connection.db, new Date(at + 2 * HOUR_MS));
    expect([await expire(), await expire()]).toEqual([2, 0]);
    expect(
      await world.rowsOf('SELECT 1 FROM webhook_earlier_secrets WHERE webhook_id = $1', world.webhook.webhook_id),
    ).toHaveLength(1);
  });
});
