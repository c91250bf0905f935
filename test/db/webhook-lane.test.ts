/** What a lane claims and records, in whose turn; and when the workflow of a subscription is woken for its retries. */
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, vi } from 'vitest';
import type { Tx } from '../../db/client.ts';
import { handOverDelivery, type JudgedResult, judgeAndRecord } from '../../db/commands/webhook-attempt.ts';
import { claimOutbox, deleteOutbox, type OutboxRow, postponeOutbox } from '../../db/queries/outbox.ts';
import { lockSubscriptions } from '../../db/queries/webhook.ts';
import {
  type AttemptResult,
  type ClaimedDelivery,
  endDeliveries,
  openClaimant,
  recordResults,
} from '../../db/queries/webhook-attempt.ts';
import {
  exchangeDeliveries,
  findTarget,
  type LaneClaim,
  laneKeysOf,
  notifyLane,
} from '../../db/queries/webhook-lane.ts';
import { claimRetry, lookForRetries, releaseRetries, wakeSubscriptions } from '../../db/queries/webhook-retry.ts';
import { statementTexts } from '../../db/statement.ts';
import { addressTenant, asTenant } from '../../db/tenant.ts';
import { ALL_LANES, LANE_KEYS, LANES, laneKeyOf, laneOf } from '../../domain/webhook.ts';
import { createDeliveryNotice } from '../../process/delivery-notice.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { raceBehind, withoutTriggers } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { recordStatements } from '../support/statement-count.ts';
import { claimBy, subscribe, writePings } from '../support/webhook.ts';

const URL = 'http://127.0.0.1:9999/hook';

/** Each test has organizations and subscriptions of its own, and leaves nothing that a lane could claim. */
const test = withApi().extend('world', async ({ api }, { onCleanup }) => {
  onCleanup(async () => {
    const cleaner = await api.owner.pool.connect();
    await cleaner.query('SET statement_timeout = 0; SET session_replication_role = replica');
    await cleaner.query('DELETE FROM webhook_deliveries; DELETE FROM outbox');
    cleaner.release(true);
  });
  return await createWorld(api);
});

async function createWorld(api: TestApi) {
  const { db, pool } = api.connection;
  const rowsOf = async (text: string, ...values: unknown[]) => (await pool.query(text, values)).rows;
  const addSubscription = async (owner: Caller): Promise<Subscription> => {
    const { webhook_id: webhookId } = await subscribe(api, owner, URL);
    return { owner, orgId: owner.orgId, webhookId };
  };
  const own = await addSubscription(await api.createCaller());
  /** Writes so many events, each with a delivery to this subscription. */
  const write = (count = 1, target: Subscription = own) => writePings(api, count, target);
  return {
    api,
    own,
    rowsOf,
    addSubscription,
    write,
    /** Organizations with so many deliveries to each of their subscriptions. */
    populate: async (organizations: readonly (readonly number[])[]): Promise<Subscription[]> => {
      const subscriptions: Subscription[] = [];
      for (const counts of organizations) {
        const owner = await api.createCaller();
        for (const count of counts) {
          const subscription = await addSubscription(owner);
          await write(count, subscription);
          subscriptions.push(subscription);
        }
      }
      return subscriptions;
    },
    /** So many copies of its own subscription, each with a delivery of its first event. */
    copy: async (count: number): Promise<string[]> => {
      const rows = await rowsOf(
        `WITH copy AS (
           INSERT INTO webhooks
             (webhook_id, org_id, url, event_types, status, lane_key, secret_sealed, created_at, updated_at)
           SELECT new_id(), org_id, url, event_types, status, lane_key, secret_sealed, now(), now()
           FROM webhooks, generate_series(1, $2::int) WHERE webhook_id = $1 RETURNING webhook_id
         )
         INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
           prior_attempts, next_attempt_at, lane_key, endings, request_id, created_at)
         SELECT new_id_with(event_id), org_id, copy.webhook_id, event_id, event_type, status, generation,
           prior_attempts, next_attempt_at, lane_key, endings, request_id, created_at
         FROM copy, (SELECT * FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY delivery_id LIMIT 1) first
         RETURNING webhook_id`,
        own.webhookId,
        count,
      );
      return rows.map(({ webhook_id: id }) => id);
    },
    open: () => openClaimant(db),
    /** One statement of a lane that has every key. */
    exchange: (claimant: number, claim: Partial<LaneClaim> = {}, results: readonly AttemptResult[] = []) =>
      exchangeDeliveries(db, results, claimBy(claimant, claim)),
    judge: (claimant: number, results: readonly JudgedResult[], { webhookId }: Subscription = own) =>
      judgeAndRecord(api.deps, claimant, [{ webhookId, requestId: 'test', results }]),
    look: () => db.transaction((tx) => lookForRetries(tx, own.webhookId)),
    wakeRows: async (): Promise<number> =>
      (await rowsOf('SELECT 1 FROM outbox WHERE object_id = $1', own.webhookId)).length,
    /** Claims the rows of the subscription, as a dispatcher does. */
    claimWakeRows: async (): Promise<OutboxRow[]> =>
      (await claimOutbox(db, 1_000)).filter(({ objectId }) => objectId === own.webhookId),
    removeWakeRows: (rows: readonly OutboxRow[]) =>
      deleteOutbox(
        db,
        rows.map(({ outboxId }) => outboxId),
      ),
    statuses: (webhookId: string = own.webhookId) =>
      rowsOf(
        'SELECT status, count(*)::int AS count FROM webhook_deliveries WHERE webhook_id = $1 GROUP BY 1 ORDER BY 1',
        webhookId,
      ),
    /** So many pending deliveries of copies of one event. */
    fill: async (count: number, { analyzes = true, due = '-1 hour' } = {}): Promise<void> => {
      // Without foreign keys, which would take minutes.
      await withoutTriggers(api.owner.pool, async (filler) => {
        await filler.query('SET LOCAL statement_timeout = 0');
        await filler.query(
          `WITH event AS (
           INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
           SELECT new_id(), $1, 'webhook.ping', 'webhook', $2, 1000 + n, ''::bytea, now()
           FROM generate_series(1, $3::int) n RETURNING event_id
         )
         INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
           prior_attempts, next_attempt_at, lane_key, endings, request_id, created_at)
         SELECT new_id_with(event_id), $1, $2, event_id, 'webhook.ping', 'pending', 1, 0,
           now() + $4::interval, lane_key, 0, 'many', now() FROM event, webhooks WHERE webhook_id = $2`,
          [own.orgId, own.webhookId, count, due],
        );
      });
      if (analyzes) await api.owner.pool.query('ANALYZE webhook_deliveries');
    },
  };
}

type Subscription = { readonly owner: Caller; readonly orgId: string; readonly webhookId: string };

function resultOf(
  { webhookId, deliveryId, claimedAt, url }: ClaimedDelivery,
  { failed = false, retryMs = 5_000 }: Outcome = {},
): JudgedResult {
  return {
    url,
    webhook_id: webhookId,
    delivery_id: deliveryId,
    claimed_at: claimedAt,
    at: new Date().toISOString(),
    outcome: failed ? 'failed' : 'succeeded',
    response_status: failed ? 500 : 200,
    response_bytes: 0,
    response_sha256: '00'.repeat(32),
    duration_ms: 1,
    error: failed ? 'http_status' : null,
    lost_ms: null,
    next_attempt_at: failed ? new Date(Date.now() + retryMs).toISOString() : null,
    stays_in_lane: false,
  };
}

type Outcome = { readonly failed?: boolean; readonly retryMs?: number };

const resultsOf = (claimed: readonly ClaimedDelivery[], outcome?: Outcome): JudgedResult[] =>
  claimed.map((delivery) => resultOf(delivery, outcome));
const idsOf = (claimed: readonly ClaimedDelivery[]): string[] => claimed.map(({ deliveryId }) => deliveryId);

describe('a claim', () => {
  test.for<[string, number[][], number, number[]]>([
    ['gives each organization one delivery before any has a second one', [[9, 9], [1], [1]], 4, [2, 1, 1]],
    ['gives an organization with one subscription as much as one with four', [[8, 8, 8, 8], [8]], 16, [8, 8]],
  ])('%s', async ([_name, organizations, limit, wanted], { world }) => {
    const orgIds = new Set((await world.populate(organizations)).map(({ orgId }) => orgId));
    const { claimed } = await world.exchange(await world.open(), { limit });
    expect([...orgIds].map((id) => claimed.filter(({ orgId }) => orgId === id).length)).toEqual(wanted);
  });

  test('gives an organization what the others do not need, and reports that there is more', async ({ world }) => {
    await world.populate([...Array.from({ length: 9 }, () => [1]), [12]]);
    const claimant = await world.open();
    const first = await world.exchange(claimant, { limit: 20 });
    // Twice its even part, which is two of 20.
    expect([first.claimed.length, first.isMore]).toEqual([9 + 4, true]);
    const second = await world.exchange(claimant, { limit: 20 });
    expect([second.claimed.length, second.isMore]).toEqual([8, false]);
  });

  test('reaches every subscription in turn, however many there are and however few are claimed at once', async ({
    world,
  }) => {
    const added = await world.populate(Array.from({ length: 16 }, () => [20]));
    const claimant = await world.open();
    let after: LaneClaim['after'];
    const seen = new Set<string>();
    for (let n = 0; n < 8; n += 1) {
      const found = await world.exchange(claimant, { after, limit: 16 });
      for (const { webhookId } of found.claimed) seen.add(webhookId);
      after = found.after;
    }
    expect(added.filter(({ webhookId }) => !seen.has(webhookId))).toEqual([]);
  });

  test.for<[places: number, claimed: number, statements: number]>([
    [0, 0, 2],
    [2, 3, 6],
  ])(
    'is the last one for now if hundreds of subscriptions have no free place (one of them has %s)',
    async ([places, ...wanted], { world }) => {
      await world.write(3);
      const copies = await world.copy(300);
      const free = new Map([[world.own.webhookId, places] as const, ...copies.map((id) => [id, 0] as const)]);
      const claimant = await world.open();
      let found: Awaited<ReturnType<typeof world.exchange>> | undefined;
      let [claimed, statements] = [0, 0];
      do {
        found = await world.exchange(claimant, { after: found?.after, free });
        claimed += found.claimed.length;
        statements += 1;
      } while (found.isMore && statements < 20);
      expect([claimed, statements]).toEqual(wanted);
    },
  );

  test('leaves a subscription the places that it has free, the first four, or one if it fails', async ({ world }) => {
    const [full, failing] = [
      await world.addSubscription(world.own.owner),
      await world.addSubscription(world.own.owner),
    ];
    for (const subscription of [world.own, full, failing]) await world.write(8, subscription);
    await world.rowsOf('UPDATE webhooks SET failing_since = now() WHERE webhook_id = $1', failing.webhookId);
    const { claimed } = await world.exchange(await world.open(), { firstMax: 4, free: new Map([[full.webhookId, 0]]) });
    const of = ({ webhookId }: Subscription) => claimed.filter((delivery) => delivery.webhookId === webhookId).length;
    expect([of(world.own), of(full), of(failing)]).toEqual([4, 0, 1]);
  });

  test('takes the oldest first, each once, also by two statements at once', async ({ world }) => {
    await world.write(40);
    const claimant = await world.open();
    const claims = await Promise.all(
      [20, 20].map(async (limit) => (await world.exchange(claimant, { limit })).claimed),
    );
    const ids = idsOf(claims.flat());
    expect(new Set(ids).size).toBe(ids.length);
    const times = idsOf(claims[0] ?? []);
    expect(times).toEqual([...times].sort());
  });

  test('takes over what an earlier claimant has left, whose results are dropped', async ({ world, api }) => {
    await world.write();
    const [earlier, later] = [await world.open(), await world.open()];
    const { claimed: lost } = await world.exchange(earlier);
    expect((await world.exchange(later)).claimed).toEqual([]);
    const { claimed, tookOver } = await world.exchange(later, { takesOver: true });
    const known = new Map(claimed.map((delivery) => [delivery.deliveryId, delivery]));
    expect([tookOver, (await world.exchange(later, { takesOver: true, known })).tookOver]).toEqual([true, false]);
    expect(idsOf(claimed)).toEqual(idsOf(lost));
    expect((await world.exchange(earlier)).claimed).toEqual([]);
    await world.exchange(earlier, {}, resultsOf(lost, { failed: true }));
    for (const delivery of lost) await handOverDelivery(api.deps, delivery, earlier);
    expect(await world.statuses()).toEqual([{ status: 'pending', count: 1 }]);
    for (let twice = 0; twice < 2; twice += 1) await world.exchange(later, {}, resultsOf(claimed));
    expect(
      await world.rowsOf(
        'SELECT status, attempt_count FROM webhook_deliveries WHERE webhook_id = $1',
        world.own.webhookId,
      ),
    ).toEqual([{ status: 'succeeded', attempt_count: 1 }]);
  });

  test('gets no result of the claim before it, which is recorded again because its answer was lost', async ({
    world,
  }) => {
    await world.write();
    const claimant = await world.open();
    const { claimed } = await world.exchange(claimant);
    const failed = resultsOf(claimed, { failed: true, retryMs: 0 });
    const results = failed.map((result) => ({ ...result, stays_in_lane: true }));
    await world.judge(claimant, results);
    expect((await world.exchange(claimant)).claimed).toHaveLength(1);
    await world.judge(claimant, results);
    expect(
      await world.rowsOf(
        'SELECT attempt_count, claimed_by::int FROM webhook_deliveries WHERE webhook_id = $1',
        world.own.webhookId,
      ),
    ).toEqual([{ attempt_count: 1, claimed_by: claimant }]);
  });

  test('that is committed after its answer was lost is taken over, and what is under way stays with its sender', async ({
    world,
    api,
  }) => {
    await world.write(3);
    const claimant = await world.open();
    const [underWay] = (await world.exchange(claimant, { limit: 1 })).claimed;
    const known = new Map([[underWay?.deliveryId ?? expect.unreachable(), underWay]]);
    const look = async () => (await world.exchange(claimant, { takesOver: true, known })).claimed;
    const lost = await api.connection.db.transaction(async (tx) => {
      const { claimed } = await exchangeDeliveries(tx, [], claimBy(claimant, { known }));
      expect([claimed.length, await look()]).toEqual([2, []]);
      return claimed;
    });
    const found = await look();
    expect(idsOf(found)).toEqual(idsOf(lost));
    for (const delivery of found) known.set(delivery.deliveryId, delivery);
    expect(await look()).toEqual([]);
  });

  test('ends what was committed for a subscription that was disabled meanwhile', async ({ world }) => {
    await world.write(3);
    await world.rowsOf(
      `UPDATE webhooks SET status = 'disabled', disabled_reason = 'requested', endings = endings + 1
       WHERE webhook_id = $1`,
      world.own.webhookId,
    );
    const { claimed, isMore } = await world.exchange(await world.open());
    expect([claimed, isMore]).toEqual([[], true]);
    expect(await world.statuses()).toEqual([{ status: 'skipped', count: 3 }]);
  });

  test('and the record of 20 deliveries to 20 subscriptions of 5 organizations are one statement', async ({
    world,
    api,
  }) => {
    await world.populate(Array.from({ length: 5 }, () => [1, 1, 1, 1]));
    const claimant = await world.open();
    const { claimed } = await world.exchange(claimant);
    expect(claimed).toHaveLength(20);
    const statements = recordStatements(api.connection.pool);
    await world.exchange(claimant, {}, resultsOf(claimed));
    expect(statements()).toHaveLength(1);
    const left = await world.rowsOf('SELECT 1 FROM webhook_deliveries WHERE lane_key IS NOT NULL');
    expect(left).toEqual([]);
  });

  test('records the failures of 20 subscriptions with as many statements as those of one, and judges each alone', async ({
    world,
    api,
  }) => {
    const subscriptions = await world.populate([[2], Array.from({ length: 19 }, () => 2)]);
    const claimant = await world.open();
    const { claimed } = await world.exchange(claimant);
    const failuresOf = (place: number) => {
      const { webhookId } = subscriptions[place] ?? world.own;
      const own = claimed.filter((delivery) => delivery.webhookId === webhookId);
      const results = resultsOf(own, { failed: place !== 2 });
      const response_status = place === 1 ? 410 : 500;
      return { webhookId, requestId: 'test', results: results.map((result) => ({ ...result, response_status })) };
    };
    const record = async (places: readonly number[]): Promise<number> => {
      const statements = recordStatements(api.connection.pool);
      await judgeAndRecord(api.deps, claimant, places.map(failuresOf));
      return statements().length;
    };
    const ofOne = await record([0]);
    const ofMany = await record(subscriptions.map((_subscription, place) => place).slice(3));
    expect(ofMany).toBe(ofOne);
    await record([1, 2]);
    const states = await world.rowsOf(
      `SELECT status, disabled_reason, failing_since IS NULL AS works, count(*)::int FROM webhooks
       WHERE webhook_id = ANY ($1) GROUP BY 1, 2, 3 ORDER BY 4 DESC, 3`,
      subscriptions.map(({ webhookId }) => webhookId),
    );
    expect(states).toEqual([
      { status: 'enabled', disabled_reason: null, works: false, count: 18 },
      { status: 'disabled', disabled_reason: 'gone', works: false, count: 1 },
      { status: 'enabled', disabled_reason: null, works: true, count: 1 },
    ]);
    expect(await world.rowsOf(`SELECT count(*)::int FROM outbox WHERE signal = 'retriesAdded'`)).toEqual([
      { count: 19 },
    ]);
  });

  test('does not wait for the disk, nor do its notification and its records, but the judgement of a failure does', async ({
    world,
    api,
  }) => {
    await world.populate([[2]]);
    const claimant = await world.open();
    const waiting = <T>(run: (tx: Tx) => Promise<T>) =>
      api.connection.db.transaction(async (tx) => {
        await tx.execute(sql`SET LOCAL synchronous_commit = on`);
        const done = await run(tx);
        return { done, waits: (await tx.execute(sql`SHOW synchronous_commit`)).rows[0]?.['synchronous_commit'] };
      });
    const notice = await waiting(async (tx) => {
      for (const lane of ALL_LANES) await notifyLane(tx, lane);
    });
    const claim = await waiting((tx) => exchangeDeliveries(tx, [], claimBy(claimant)));
    const [succeeded, failed] = [claim.done.claimed.slice(0, 1), claim.done.claimed.slice(1)];
    const record = await waiting((tx) => exchangeDeliveries(tx, resultsOf(succeeded), claimBy(claimant, { limit: 0 })));
    const judgement = await waiting((tx) => recordResults(tx, claimant, resultsOf(failed, { failed: true })));
    expect([notice.waits, claim.waits, record.waits, judgement.waits]).toEqual(['off', 'off', 'off', 'on']);
    expect(
      await world.rowsOf('SELECT 1 FROM webhook_attempts WHERE delivery_id = ANY ($1)', idsOf(claim.done.claimed)),
    ).toHaveLength(2);
  });

  test('takes two statements to look up the targets of 20 waiting subscriptions, and finds each its own', async ({
    world,
    api,
  }) => {
    const { db, pool } = api.connection;
    const subscriptions = await world.populate([Array.from({ length: 20 }, () => 0)]);
    const ids = subscriptions.map(({ webhookId }) => webhookId);
    await pool.query(`UPDATE webhooks SET url = 'http://127.0.0.1:9999/' || webhook_id WHERE webhook_id = ANY ($1)`, [
      ids,
    ]);
    const statements = recordStatements(pool);
    const found = await Promise.all([...ids, 'none'].map((id) => findTarget(db, id)));
    expect(statements()).toHaveLength(2);
    expect(found.map((target) => target?.url)).toEqual([...ids.map((id) => `http://127.0.0.1:9999/${id}`), undefined]);
  });
});

describe('the notification of the lanes', () => {
  test('looks for a delivery by index, also by a plan that is made while there are none', async ({ world }) => {
    const plan = await world.rowsOf(`EXPLAIN ${statementTexts.get('notify_lane_0')}`);
    const text = plan.map((row) => row['QUERY PLAN']).join('\n');
    expect(text).toContain('using webhook_deliveries_unclaimed');
    expect(text).not.toMatch(/Seq Scan|Sort/);
  });

  test('goes only to lanes that have deliveries to take, and to none whose deliveries wait', async ({ world, api }) => {
    const { lanes, client } = await listenForLanes(api);
    const others = await Promise.all(
      Array.from({ length: 8 }, async () => await world.addSubscription(await api.createCaller())),
    );
    const due = [world.own, ...others.slice(0, 1)];
    for (const subscription of [world.own, ...others]) await world.write(2, subscription);
    await world.rowsOf(
      `UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 hour' WHERE webhook_id <> ALL ($1)`,
      due.map(({ webhookId }) => webhookId),
    );
    for (const lane of ALL_LANES) await notifyLane(api.connection.db, lane);
    const wanted = new Set(due.map(({ orgId }) => laneOf(orgId)));
    await vi.waitUntil(() => lanes.length >= wanted.size, WAIT);
    client.release(true);
    expect([lanes.length, new Set(lanes)]).toEqual([wanted.size, wanted]);
  });

  test("finds an organization's lane by the range that has its key", () => {
    const ids = Array.from({ length: LANE_KEYS }, (_, key) => key.toString(16).padStart(2, '0'));
    const outside = ids.filter((orgId) => {
      const { from, to } = laneKeysOf(laneOf(orgId));
      return laneKeyOf(orgId) < from || laneKeyOf(orgId) >= to;
    });
    expect(outside).toEqual([]);
  });

  test('goes to the lane of the organization that has committed, although every lane has deliveries to take', async ({
    world,
    api,
  }) => {
    const subscriptions: Subscription[] = [];
    const isCovered = () => new Set(subscriptions.map(({ orgId }) => laneOf(orgId))).size === LANES;
    while (!isCovered()) subscriptions.push(await world.addSubscription(await api.createCaller()));
    for (const subscription of subscriptions) await world.write(1, subscription);
    const { lanes, client } = await listenForLanes(api);
    const notify = createDeliveryNotice(api.connection.db);
    asTenant(world.own.orgId, notify);
    await vi.waitUntil(() => lanes.length > 0, WAIT);
    expect(lanes).toEqual([laneOf(world.own.orgId)]);
    // A provider's event does not say whose it is.
    asTenant(addressTenant('192.0.2.1'), notify);
    await vi.waitUntil(() => lanes.length > LANES, WAIT);
    client.release(true);
    expect(lanes.slice(1).toSorted()).toEqual(ALL_LANES);
  });
});

/** The lanes that are notified from now on, and the connection that hears of them. */
async function listenForLanes(api: TestApi) {
  const lanes: number[] = [];
  const client = await api.connection.pool.connect();
  client.on('notification', ({ payload }) => lanes.push(Number(payload)));
  await client.query('LISTEN deliveries_due');
  return { lanes, client };
}

describe('a failed attempt', () => {
  const fail = async (world: Awaited<ReturnType<typeof createWorld>>, ...retriesMs: number[]): Promise<void> => {
    await world.write(retriesMs.length);
    const claimant = await world.open();
    // As many as were written, although it fails.
    const { claimed } = await world.exchange(claimant, { free: new Map([[world.own.webhookId, 100]]) });
    await world.judge(
      claimant,
      claimed.map((delivery, place) => resultOf(delivery, { failed: true, retryMs: retriesMs[place] ?? 0 })),
    );
  };

  test('wakes the workflow of its subscription, unless that looks for retries by then', async ({ world }) => {
    await fail(world, 5_000);
    expect(await world.wakeRows()).toBe(1);
    await world.removeWakeRows(await world.claimWakeRows());
    const { nextAttemptAt, waiting } = await world.look();
    expect([waiting, Math.abs(Date.now() + 5_000 - Date.parse(nextAttemptAt ?? '')) < 5_000]).toEqual([1, true]);
    await fail(world, 60_000);
    expect(await world.wakeRows()).toBe(0);
    await fail(world, 1_000);
    expect(await world.wakeRows()).toBe(1);
    await world.removeWakeRows(await world.claimWakeRows());
    // Of several it is the earliest that counts.
    await fail(world, 60_000, -60_000, 60_000);
    expect(await world.wakeRows()).toBe(1);
  });

  test('that is recorded while the workflow looks is found by that look', async ({ world, api }) => {
    await world.write();
    const { webhookId } = world.own;
    const [found] = await raceBehind(
      api.connection.pool,
      {
        hold: (holder) => holder.query('SELECT 1 FROM webhooks WHERE webhook_id = $1 FOR NO KEY UPDATE', [webhookId]),
        change: (holder) =>
          holder.query('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', [webhookId]),
      },
      [world.look],
    );
    expect(found?.waiting).toBe(1);
  });

  test('has one row in the outbox, which serves no later retry once a dispatcher has claimed it', async ({ world }) => {
    await fail(world, 5_000);
    const claimed = await world.claimWakeRows();
    await fail(world, 4_000);
    await world.removeWakeRows(claimed);
    expect(await world.wakeRows()).toBe(1);
    await fail(world, 3_000);
    expect(await world.wakeRows()).toBe(1);
  });

  test('waits for a day at most before it looks, however far ahead the clock of a sender was', async ({ world }) => {
    await fail(world, 400 * 86_400_000);
    expect(await world.claimWakeRows()).toMatchObject([{ startDelayMs: 86_400_000 }]);
  });

  test('has a row that no dispatcher claims with an old time while an earlier wake-up is committed', async ({
    world,
    api,
  }) => {
    await fail(world, 300_000);
    await api.connection.db.transaction(async (tx) => {
      const webhooks = await lockSubscriptions(tx, [world.own.webhookId]);
      await wakeSubscriptions(
        tx,
        webhooks.map((webhook) => ({ webhook, requestId: 'test' })),
      );
      expect(await world.claimWakeRows()).toEqual([]);
    });
    expect(await world.claimWakeRows()).toMatchObject([{ startDelayMs: 0 }]);
  });

  test('starts its workflow at the time that was committed while its row was claimed, not at an older one', async ({
    world,
    api: { connection, owner },
  }) => {
    await fail(world, 300_000);
    const wait = 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
    await owner.pool.query(`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS '${wait}'`);
    await owner.pool.query('CREATE TRIGGER wait BEFORE UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION wait()');
    const [claimed] = await raceBehind(
      connection.pool,
      {
        hold: (holder) => holder.query('SELECT pg_advisory_xact_lock(1)'),
        change: (holder) =>
          holder.query('UPDATE webhooks SET retries_at = now() WHERE webhook_id = $1', [world.own.webhookId]),
      },
      [world.claimWakeRows],
    );
    await owner.pool.query('DROP FUNCTION wait() CASCADE');
    expect(claimed).toMatchObject([{ startDelayMs: 0 }]);
  });

  test('keeps its outbox row after a failed dispatch, unless another row was written meanwhile', async ({
    world,
    api,
  }) => {
    await fail(world, 5_000);
    const [first] = await world.claimWakeRows();
    await postponeOutbox(api.connection.db, [first?.outboxId ?? 0], 'test');
    expect(
      await world.rowsOf('SELECT claimed, last_error FROM outbox WHERE object_id = $1', world.own.webhookId),
    ).toEqual([{ claimed: false, last_error: 'test' }]);
    await world.rowsOf('UPDATE outbox SET due_at = now() WHERE object_id = $1', world.own.webhookId);
    const again = await world.claimWakeRows();
    await fail(world, 1_000);
    await postponeOutbox(
      api.connection.db,
      again.map(({ outboxId }) => outboxId),
      'test',
    );
    expect(await world.wakeRows()).toBe(1);
  });

  test('is dispatched after settlements, and still in time', async ({ world, api }) => {
    await fail(world, 5_000);
    await world.rowsOf(
      `INSERT INTO outbox (kind, object_id, context, request_id)
       SELECT 'otp', 'o' || n, '{}', 'test' FROM generate_series(1, 100) n`,
    );
    const kinds = (await claimOutbox(api.connection.db, 32)).map(({ kind }) => kind);
    expect(kinds.length).toBeLessThanOrEqual(32);
    expect(kinds.indexOf('webhook_subscription')).toBeGreaterThanOrEqual(28);
  });
});

describe('no retry is forgotten', () => {
  const failure = fc.record({ atMs: fc.integer({ min: 0, max: 50 }), retryMs: fc.integer({ min: 0, max: 20 }) });
  const scenario = fc.record({
    failures: fc.array(failure, { minLength: 1, maxLength: 6 }),
    /** What becomes of each dispatch, and of each round; `done` once the list has ended. */
    dispatches: fc.array(fc.constantFrom('done', 'done', 'refused', 'killed'), { maxLength: 4 }),
    rounds: fc.array(fc.constantFrom('done', 'done', 'killed'), { maxLength: 4 }),
    /** Between the signal and the removal of its row. */
    callMs: fc.integer({ min: 0, max: 60 }),
  });
  type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

  /** @returns how many deliveries are still pending when everything is quiet */
  async function play(api: TestApi, { failures, callMs, ...scenario }: Scenario): Promise<number> {
    // Copies: a counterexample is printed as it was drawn.
    const [dispatches, rounds] = [[...scenario.dispatches], [...scenario.rounds]];
    const world = await createWorld(api);
    const { webhookId } = world.own;
    let isWoken = false;
    let workflow: Promise<void> | undefined;
    const round = async (): Promise<number | null> => {
      const claimant = await world.open();
      for (;;) {
        const retry = await claimRetry(api.connection.db, webhookId, { claimant, now: new Date() });
        // Temporal repeats the activity of a killed worker.
        if (retry && rounds.shift() === 'killed') return await round();
        if (!retry) break;
        await world.judge(claimant, [resultOf(retry)]);
      }
      const { nextAttemptAt } = await world.look();
      return nextAttemptAt === null ? null : Math.max(0, Date.parse(nextAttemptAt) - Date.now());
    };
    const loop = async (): Promise<void> => {
      for (;;) {
        isWoken = false;
        const waitMs = await round();
        if (waitMs === null && !isWoken) break;
        const endMs = Date.now() + (waitMs ?? 0);
        while (Date.now() < endMs && !isWoken) await delay(1);
      }
      workflow = undefined;
    };
    const dispatch = async (): Promise<void> => {
      await world.rowsOf('UPDATE outbox SET due_at = now() WHERE object_id = $1', webhookId);
      const rows = await world.claimWakeRows();
      if (rows.length === 0) return;
      const fate = dispatches.shift() ?? 'done';
      if (fate === 'killed') return;
      const ids = rows.map(({ outboxId }) => outboxId);
      if (fate === 'refused') return await postponeOutbox(api.connection.db, ids, 'test');
      isWoken = true;
      workflow ??= loop();
      await delay(callMs);
      await world.removeWakeRows(rows);
    };
    await world.write(failures.length);
    const claimant = await world.open();
    const { claimed } = await world.exchange(claimant);
    let failing = failures.length;
    const dispatchAll = async (): Promise<void> => {
      while (failing > 0 || workflow || (await world.wakeRows()) > 0) {
        await dispatch();
        await delay(1);
      }
    };
    const failOne = async ({ atMs, retryMs }: { atMs: number; retryMs: number }): Promise<void> => {
      const delivery = claimed[--failing];
      await delay(atMs);
      if (delivery) await world.judge(claimant, [resultOf(delivery, { failed: true, retryMs })]);
    };
    await Promise.all([...failures.map(failOne), dispatchAll()]);
    await dispatchAll();
    const pending = await world.rowsOf(
      `SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'pending'`,
      webhookId,
    );
    return pending.length;
  }

  test('whatever lanes, dispatchers and rounds do at once, and wherever they are killed', async ({ api }) => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        expect(await play(api, given)).toBe(0);
      }),
      { numRuns: 12 },
    );
  });
});

test('a retry that a round has claimed is claimed by a later round alone, and not given to the lane', async ({
  world,
  api,
}) => {
  await world.write();
  const { webhookId } = world.own;
  await world.rowsOf('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', webhookId);
  const [earlier, own, later] = [await world.open(), await world.open(), await world.open()];
  const claims: boolean[] = [];
  for (const claimant of [own, own, earlier, later]) {
    const claim = { claimant, now: new Date() };
    claims.push((await claimRetry(api.connection.db, webhookId, claim)) !== undefined);
  }
  expect(claims).toEqual([true, false, false, true]);
  await releaseRetries(api.connection.db, webhookId, new Date());
  const lanes = await world.rowsOf('SELECT lane_key FROM webhook_deliveries WHERE webhook_id = $1', webhookId);
  expect(lanes).toEqual([{ lane_key: null }]);
});

describe('a redelivery of what a round that died had claimed', () => {
  test('is taken by the lane once its claim is older than any attempt, and not before', async ({ world, api }) => {
    await world.write();
    const lane = await world.open();
    await world.rowsOf('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', world.own.webhookId);
    const claim = { claimant: await world.open(), now: new Date() };
    const { deliveryId: id } =
      (await claimRetry(api.connection.db, world.own.webhookId, claim)) ?? expect.unreachable();
    const { owner, webhookId } = world.own;
    const url = `/v1/webhooks/${webhookId}`;
    for (const status of ['disabled', 'enabled']) await api.call(owner, 'PATCH', url, { status });
    await endDeliveries(api.connection.db, webhookId);
    expect((await api.call(owner, 'POST', `${url}/deliveries/${id}/redeliver`)).statusCode).toBe(202);
    const takeOver = async () => idsOf((await world.exchange(lane, { takesOver: true })).claimed);
    expect(await takeOver()).toEqual([]);
    await world.rowsOf(
      `UPDATE webhook_deliveries SET claimed_at = now() - interval '3 minutes' WHERE delivery_id = $1`,
      id,
    );
    expect(await takeOver()).toEqual([id]);
  });
});

describe('an attempt whose sender died', () => {
  test('is shown as under way until its claim is older than any attempt, though its delivery has ended', async ({
    world,
    api,
  }) => {
    await world.write();
    const { owner, webhookId } = world.own;
    expect((await world.exchange(await world.open())).claimed).toHaveLength(1);
    await api.call(owner, 'PATCH', `/v1/webhooks/${webhookId}`, { status: 'disabled' });
    await endDeliveries(api.connection.db, webhookId);
    const shown = async (): Promise<Json> =>
      jsonOf(await api.call(owner, 'GET', `/v1/webhooks/${webhookId}/deliveries`));
    const underWay = { number: 1, outcome: 'pending' };
    expect(await shown()).toMatchObject([{ status: 'skipped', attempt_count: 1, attempts: [underWay] }]);
    await world.rowsOf(
      `UPDATE webhook_deliveries SET claimed_at = now() - interval '3 minutes' WHERE webhook_id = $1`,
      webhookId,
    );
    expect(await shown()).toMatchObject([{ status: 'skipped', attempt_count: 0, attempts: [] }]);
  });
});

/** How many rows the transaction has read. PostgreSQL counts earlier ones of its connection too, for up to a second. */
async function countRead(tx: Tx): Promise<number> {
  const { rows } = await tx.execute<{ count: number }>(
    'SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS count FROM pg_stat_xact_user_tables',
  );
  return rows[0]?.count ?? 0;
}

/** How many deliveries are claimed, and how many rows are read for that. */
async function claimCounted(tx: Tx, claim: LaneClaim): Promise<[claimed: number, rowsRead: number]> {
  const before = await countRead(tx);
  const { claimed } = await exchangeDeliveries(tx, [], claim);
  return [claimed.length, (await countRead(tx)) - before];
}

describe('a subscription with thousands of pending deliveries', () => {
  const PENDING = 12_000;
  const CLAIMED = 128;

  test('is disabled, rotated, enabled and deleted without a change of any of them, with one outbox row', async ({
    world,
    api,
  }) => {
    await world.fill(PENDING);
    const { webhookId, owner } = world.own;
    const url = `/v1/webhooks/${webhookId}`;
    const unchanged = [{ status: 'pending', count: PENDING }];
    expect((await api.call(owner, 'PATCH', url, { status: 'disabled' })).statusCode).toBe(200);
    const shown = await api.call(owner, 'GET', `${url}/deliveries?limit=2`);
    const skipped = { status: 'skipped', next_attempt_at: null };
    expect(jsonOf(shown)).toMatchObject([skipped, skipped]);
    expect((await api.call(owner, 'POST', `${url}/rotate-secret`)).statusCode).toBe(200);
    expect((await api.call(owner, 'PATCH', url, { status: 'enabled' })).statusCode).toBe(200);
    expect((await api.call(owner, 'DELETE', url)).statusCode).toBe(204);
    expect([await world.wakeRows(), await world.statuses()]).toEqual([1, unchanged]);
    for (let step = 0; step < 10; step += 1) expect(await endDeliveries(api.connection.db, webhookId)).toBe(true);
    expect(await world.statuses()).toEqual([
      { status: 'canceled', count: 10_000 },
      { status: 'pending', count: PENDING - 10_000 },
    ]);
  });

  test.for([
    [false, 'after'],
    [true, 'after'],
    [false, 'before'],
    [true, 'before'],
  ] as const)(
    'is claimed from by index, not by a look at all that is pending (takes over: %s, planned %s they exist)',
    async ([takesOver, planned], { world, api }) => {
      const claim = claimBy(await world.open(), { takesOver, limit: CLAIMED, firstMax: CLAIMED });
      const isPlannedFirst = planned === 'before';
      const [claimed, rowsRead] = await api.connection.db.transaction(async (tx) => {
        if (isPlannedFirst) await tx.execute(`SET LOCAL plan_cache_mode = 'force_generic_plan'`);
        if (isPlannedFirst) await exchangeDeliveries(tx, [], claim);
        await world.fill(PENDING, { analyzes: !isPlannedFirst });
        await world.populate([[1]]);
        return await claimCounted(tx, claim);
      });
      expect(claimed).toBe(CLAIMED);
      expect(rowsRead).toBeGreaterThan(0);
      expect(rowsRead).toBeLessThan(PENDING / 10);
    },
  );

  test('is not read by a claim while its deliveries wait for their first retry', async ({ world, api }) => {
    await world.fill(PENDING, { due: '1 hour' });
    await world.populate([[1]]);
    const claim = claimBy(await world.open(), { limit: CLAIMED, firstMax: CLAIMED });
    const [claimed, rowsRead] = await api.connection.db.transaction((tx) => claimCounted(tx, claim));
    expect(claimed).toBe(1);
    expect(rowsRead).toBeLessThan(100);
  });
});
