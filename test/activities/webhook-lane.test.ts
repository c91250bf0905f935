/** The activity of a lane: what it sends next, how much at once, and what is left when it dies. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, vi } from 'vitest';
import { createDestinations, type Destinations } from '../../activities/destination.ts';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { webhookLaneActivities } from '../../activities/webhook-lane.ts';
import { openClaimant } from '../../db/queries/webhook-attempt.ts';
import { exchangeDeliveries, laneKeysOf } from '../../db/queries/webhook-lane.ts';
import { LANES, laneOf } from '../../domain/webhook.ts';
import { activityDeps } from '../support/activity.ts';
import type { TestApi } from '../support/api.ts';
import { whileWritesFail, withoutTriggers } from '../support/database.ts';
import type { Json } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { recordQueries, recordStatements } from '../support/statement-count.ts';
import { answered, claimBy, endAs, subscribe } from '../support/webhook.ts';
import { type Answer, failing, slowly, succeeding, test, type World } from './delivery.ts';

/** Requests that are answered only by `release`. */
function held(given = answered(200)) {
  const releases: (() => void)[] = [];
  const answer: Answer = () => new Promise((resolve) => releases.push(() => resolve(given)));
  return { answer, count: () => releases.length, release: () => releases.splice(0).map((release) => release()) };
}

type Held = { readonly given?: GuardedAnswer; readonly destinations?: Destinations };

/** Serves the lanes without an answer, until so many requests are under way. */
async function hold(world: World, wanted: number, { given, destinations }: Held = {}) {
  const { answer, ...requests } = held(given);
  world.answer = answer;
  const stop = world.startLanes(destinations);
  await vi.waitUntil(() => requests.count() === wanted, WAIT);
  return { ...requests, stop };
}

describe('a lane', () => {
  test('has a bounded number of requests to one host over all subscriptions, and holds up no other host', async ({
    world,
    api,
    onTestFinished,
  }) => {
    const crowded = [9_998, 9_998, 9_998].map((port, n) => world.subscribe(`http://127.0.0.1:${port}/${n}`));
    const other = await world.subscribe('http://127.0.0.1:9997/other');
    const targets = [...(await Promise.all(crowded)), other];
    for (const { webhook_id: webhookId } of targets) await world.burst(4, { orgId: world.owner.orgId, webhookId });
    const statements = recordStatements(api.connection.pool);
    const { release, stop } = await hold(world, 8, { destinations: createDestinations(4) });
    const claimed = 'SELECT 1 FROM webhook_deliveries WHERE org_id = $1 AND claimed_by > 0';
    await vi.waitUntil(async () => (await world.rowsOf(claimed, world.owner.orgId)).length === 16, WAIT);
    const later = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 600);
    onTestFinished(() => later.mockRestore());
    const sentTo = (port: string) => world.sent.filter(({ url }) => new URL(url).port === port).length;
    expect([sentTo('9998'), sentTo('9997')]).toEqual([4, 4]);
    world.answer = succeeding;
    release();
    await vi.waitUntil(async () => !(await world.isDue()), WAIT);
    await stop();
    expect(world.sent).toHaveLength(16);
    // Eight have waited for more than half a second: none is given back, and one look serves those of a subscription.
    const made = statements();
    expect(made).not.toContain('release_deliveries');
    expect(made.filter((name) => name === 'find_targets').length).toBeLessThan(8);
  });

  test('counts how late a request begins, also after it was claimed', async ({ world }) => {
    await world.burst(2);
    const { count, release, stop } = await hold(world, 1, { destinations: createDestinations(1) });
    await delay(1_000);
    release();
    await vi.waitUntil(() => count() === 1, WAIT);
    release();
    await stop();
    expect((world.late[1] ?? 0) - (world.late[0] ?? 0)).toBeGreaterThan(0.9);
  });

  test('counts apart what is late because its endpoint is slow', async ({ world }) => {
    await world.burst(5);
    const { release, stop } = await hold(world, 4);
    await world.rowsOf(
      `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 minute' WHERE webhook_id = $1 AND claimed_by = 0`,
      world.webhook.webhook_id,
    );
    // The lane looks at it meanwhile.
    await delay(1_000);
    world.answer = succeeding;
    release();
    await vi.waitUntil(() => world.sent.length === 5, WAIT);
    await stop();
    expect([world.late.length, world.waited.map((seconds) => seconds > 60)]).toEqual([4, [true]]);
  });

  test('counts apart what waited while its endpoint failed, also once it works again', async ({ world }) => {
    await world.burst(100);
    world.answer = failing;
    const stop = world.startLanes();
    await vi.waitUntil(() => world.sent.length > 5, WAIT);
    await world.rowsOf(
      `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 minute' WHERE webhook_id = $1 AND claimed_by = 0`,
      world.webhook.webhook_id,
    );
    world.answer = succeeding;
    await vi.waitUntil(async () => !(await world.isDue()), WAIT);
    await stop();
    expect(world.late.filter((seconds) => seconds > 10)).toEqual([]);
    expect(world.waited.length).toBeGreaterThan(50);
  });

  test('counts how late an event is sent for the first time, not how late it is sent again', async ({ world, api }) => {
    const [sent, skipped] = [await world.ping(), await world.ping()];
    await endAs(api, 'skipped', skipped.delivery_id);
    await world.deliver();
    for (const delivery of [sent, skipped]) await world.redeliver(delivery);
    await world.deliver();
    expect([world.sent.length, world.late.length]).toEqual([3, 1]);
  });

  test.for([400 * 86_400_000, -3_600_000])(
    'dates and signs an attempt, and dates its retry, by the clock of the database while its own is %s ms ahead',
    async (aheadMs, { world }) => {
      world.aheadMs = aheadMs;
      world.answer = failing;
      const delivery = await world.ping();
      const beforeMs = Date.now();
      await world.deliver();
      const { attempts, next_attempt_at: next } = await world.readDelivery(delivery);
      const [sinceMs, retryMs] = [Date.parse(attempts[0].at) - beforeMs, Date.parse(next) - Date.parse(attempts[0].at)];
      expect([Math.abs(sinceMs) < 30 * 60_000, retryMs]).toEqual([true, 5_005]);
      await world.makeDue();
      await world.attempt();
      const signedMs = world.sent.map(({ headers }) => Number(headers['webhook-timestamp']) * 1_000);
      expect(signedMs.map((ms) => Math.abs(ms - beforeMs) < 30 * 60_000)).toEqual([true, true]);
    },
  );

  test('gives back what waits for a busy host once it must end, and the next one sends it', async ({ world }) => {
    await world.burst(3);
    const { release, stop } = await hold(world, 1, { destinations: createDestinations(1) });
    const stopped = stop();
    const isFree = 'SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND lane_key IS NOT NULL AND claimed_by = 0';
    await vi.waitUntil(async () => (await world.rowsOf(isFree, world.webhook.webhook_id)).length === 2, WAIT);
    release();
    await stopped;
    expect(world.sent).toHaveLength(1);
    world.answer = succeeding;
    await world.deliver();
    expect(world.sent).toHaveLength(3);
  });

  test('has four requests to a new subscription in flight, and sends the next when one is answered', async ({
    world,
  }) => {
    await world.burst(6);
    const { release, stop } = await hold(world, 4);
    await delay(200);
    expect(world.sent).toHaveLength(4);
    release();
    await vi.waitUntil(() => world.sent.length === 6, WAIT);
    release();
    await stop();
    expect(await world.isDue()).toBe(false);
  });

  test('has up to 32 requests in flight while the endpoint answers well, and one while it fails', async ({ world }) => {
    await world.burst(120);
    const well = slowly(answered(200), 20);
    world.answer = well.answer;
    await world.deliver();
    expect([well.most > 16, well.most <= 32]).toEqual([true, true]);
    world.answer = failing;
    await world.burst(1);
    await world.deliver();
    await world.burst(6);
    const badly = slowly(answered(500), 20);
    world.answer = badly.answer;
    await world.deliver();
    expect(badly.most).toBe(1);
  });

  test.for<[string, Parameters<TestApi['call']>[1], string, Json | undefined, readonly string[]]>([
    ['disabled', 'PATCH', '', { status: 'disabled' }, []],
    ['deleted', 'DELETE', '', undefined, []],
    ['moved', 'PATCH', '', { url: 'http://127.0.0.1:9998/moved' }, ['http://127.0.0.1:9998/moved 1']],
    ['given a new secret', 'POST', '/rotate-secret', undefined, ['http://127.0.0.1:9999/hook 2']],
  ])(
    'sends nothing by an old claim later than half a second after a slow subscription was %s',
    async ([_, method, below, body, later], { world }) => {
      const slow = held({ ...answered(200), durationMs: 14_000 });
      world.answer = (url) => (world.sent.length > 64 ? slow.answer(url) : succeeding(url));
      await world.burst(160);
      const stop = world.startLanes();
      await vi.waitUntil(() => slow.count() === 32, WAIT);
      await world.call(method, below, body);
      await delay(600);
      const begun = world.sent.length;
      world.answer = succeeding;
      slow.release();
      await vi.waitUntil(async () => !(await world.isDue()), WAIT);
      await stop();
      const signatures = (text = '') => text.split(' ').length;
      const seen = world.sent
        .slice(begun)
        .map(({ url, headers }) => `${url} ${signatures(headers['webhook-signature'])}`);
      expect([...new Set(seen)]).toEqual(later);
    },
  );

  test('serves many deliveries with one statement: one in a burst costs less than a tenth', async ({ world, api }) => {
    await world.burst(400);
    const queries = recordQueries(api.connection.pool);
    await world.deliver();
    expect(world.sent).toHaveLength(400);
    // Other lanes also look for work, again and again. A statement of a lane names the keys of that lane.
    const { from } = laneKeysOf(laneOf(world.owner.orgId));
    const own = queries().filter(
      ({ text, values }) => !text.startsWith('SELECT 1 FROM webhook_deliveries') && (values[2] ?? from) === from,
    );
    expect(own.length).toBeLessThan(40);
  });

  test('sends the same bytes under the same id again, as the same attempt, after a crash; its first sender, if it comes back, changes nothing', async ({
    world,
  }) => {
    const delivery = await world.ping();
    const { release, stop: stopFrozen } = await hold(world, 1, { given: answered(500) });
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'pending' }]);
    world.answer = succeeding;
    await world.deliver();
    expect(world.sent[1]?.body).toEqual(world.sent[0]?.body);
    expect(world.sent[1]?.headers['webhook-id']).toBe(world.sent[0]?.headers['webhook-id']);
    release();
    await stopFrozen();
    expect(await world.readDelivery(delivery)).toMatchObject({
      status: 'succeeded',
      attempts: [{ number: 1, outcome: 'succeeded', response_status: 200 }],
    });
  });

  test('takes all that another has left without a pause, also if its places are taken meanwhile', async ({
    world,
    api,
    onTestFinished,
  }) => {
    await world.burst(40);
    const claim = claimBy(await openClaimant(api.connection.db), { limit: 40, firstMax: 40 });
    expect((await exchangeDeliveries(api.connection.db, [], claim)).claimed).toHaveLength(40);
    world.answer = slowly(answered(200), 100).answer;
    // The clock stands still, so no pause ends.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    onTestFinished(() => clock.mockRestore());
    await world.deliver();
    expect(world.sent).toHaveLength(40);
  });

  test('reaches the others while one organization has subscribers that hang', async ({ world, api }) => {
    for (let n = 0; n < 19; n += 1) {
      const { webhook_id: webhookId } = await world.subscribe('http://127.0.0.1:9999/hang');
      await world.burst(40, { orgId: world.owner.orgId, webhookId });
    }
    const hanging = held();
    world.answer = (url) => (url.endsWith('/hang') ? hanging.answer(url) : succeeding(url));
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

  test('has at most 512 requests in flight, also when slow subscribers with many claimed deliveries become fast again', async ({
    world,
    api,
  }) => {
    const addTo = async (path: string, subscriptions: number, count: number) => {
      let owner = await api.createCaller();
      while (laneOf(owner.orgId) !== 0) owner = await api.createCaller();
      for (let n = 0; n < subscriptions; n += 1) {
        const { webhook_id: webhookId } = await subscribe(api, owner, `http://127.0.0.1:9999${path}`, ['webhook.ping']);
        await world.burst(count, { orgId: owner.orgId, webhookId });
      }
    };
    const paths = ['/0', '/1', '/2', '/3'];
    const requests = new Map([...paths, '/hang'].map((path) => [path, held()]));
    const fast = new Map(paths.map((path) => [path, 40]));
    const countOf = (path: string) => requests.get(path)?.count() ?? 0;
    const inFlight = () => [...requests.keys()].reduce((sum, path) => sum + countOf(path), 0);
    let most = 0;
    let durationMs = 14_000;
    world.answer = async (url) => {
      const { pathname: path } = new URL(url);
      const left = fast.get(path) ?? 0;
      fast.set(path, left - 1);
      if (left > 0) return await succeeding(url);
      const answer = requests.get(path)?.answer(url);
      most = Math.max(most, inFlight());
      await answer;
      return { ...answered(200), durationMs };
    };
    for (const path of paths) await addTo(path, 1, 160);
    const stop = world.startLanes(createDestinations(1_000));
    await vi.waitUntil(() => paths.every((path) => countOf(path) === 32), WAIT);
    for (const path of paths) requests.get(path)?.release();
    await vi.waitUntil(() => paths.every((path) => countOf(path) === 4), WAIT);
    for (let n = 0; n < 7; n += 1) await addTo('/hang', 18, 4);
    await vi.waitUntil(() => inFlight() > 480, WAIT);
    durationMs = 5;
    for (const path of paths) {
      fast.set(path, 28);
      requests.get(path)?.release();
    }
    await delay(200);
    for (const [path, { release }] of requests) {
      fast.set(path, Number.POSITIVE_INFINITY);
      release();
    }
    await vi.waitUntil(async () => !(await world.isDue()), WAIT);
    await stop();
    expect(most).toBeLessThanOrEqual(512);
    expect(world.sent).toHaveLength(4 * 160 + 7 * 18 * 4);
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

  test('that ended after failures of the database sends nothing more', async ({ world, api }) => {
    await world.burst(3);
    const { release, stop } = await hold(world, 1, { destinations: createDestinations(1) });
    let failures = 0;
    const broken = vi.spyOn(api.connection.pool, 'query').mockImplementation(async () => {
      failures += 1;
      throw Object.assign(new Error('down'), { code: '08006' });
    });
    await vi.waitUntil(() => failures === 5 * LANES, WAIT);
    broken.mockRestore();
    release();
    await delay(300);
    expect(world.sent).toHaveLength(1);
    await expect(stop()).rejects.toThrow();
    world.answer = succeeding;
    await world.deliver();
    expect(world.sent).toHaveLength(4);
  });

  test('records a failure once the database takes it, if it did not at first', async ({
    world,
    api,
    onTestFinished,
  }) => {
    const delivery = await world.ping();
    world.answer = failing;
    const queries = vi.spyOn(pg.Client.prototype, 'query');
    onTestFinished(() => queries.mockRestore());
    const stop = await whileWritesFail(api.owner.pool, 'webhooks', async () => {
      const started = world.startLanes();
      await vi.waitUntil(() => queries.mock.calls.some(([sent]) => JSON.stringify(sent).includes('rollback')), WAIT);
      return started;
    });
    const outcomes = async () => (await world.readDelivery(delivery)).attempts.map(({ outcome }: Json) => outcome);
    await vi.waitUntil(async () => (await outcomes())[0] === 'failed', WAIT);
    await stop();
    expect(await outcomes()).toEqual(['failed']);
  });

  test('records a failure and ends, although the database has lost another subscription that failed', async ({
    world,
    api,
  }) => {
    const lost = await world.subscribe('http://127.0.0.1:9999/lost');
    const delivery = await world.ping();
    await world.ping(lost.webhook_id);
    const { release, stop } = await hold(world, 2, { given: answered(500) });
    await withoutTriggers(api.owner.pool, async (client) => {
      for (const table of ['webhook_deliveries', 'webhooks'])
        await client.query(`DELETE FROM ${table} WHERE webhook_id = $1`, [lost.webhook_id]);
    });
    release();
    await stop();
    expect(await world.readDelivery(delivery)).toMatchObject({ attempts: [{ number: 1, outcome: 'failed' }] });
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
    world.answer = async () => ({ ...answered(500), lostMs: 7 });
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

  test('makes its statement while no other lane of its process makes one', async ({ world }) => {
    let [running, most, count] = [0, 0, 0];
    world.crash = (point) => {
      if (point === 'lane.exchange:before_commit') running += 1;
      if (point === 'lane.exchange:after_commit') running -= 1;
      count += 1;
      most = Math.max(most, running);
    };
    const targets = Array.from({ length: 16 }, (_, n) => world.subscribe(`http://127.0.0.1:9998/${n}`));
    for (const { webhook_id: webhookId } of await Promise.all(targets))
      await world.burst(20, { orgId: world.owner.orgId, webhookId });
    const stop = world.startLanes();
    await vi.waitUntil(async () => !(await world.isDue()), WAIT);
    await stop();
    expect(count).toBeGreaterThan(2 * LANES);
    expect(most).toBe(1);
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
