/** The sweep for lost runs against the database; `running` are the workflows that Temporal knows of. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { describe, expect, vi } from 'vitest';
import { sweepActivities } from '../../activities/sweep.ts';
import { ALL_LANES } from '../../domain/webhook.ts';
import { laneWorkflowId, settlementWorkflowId, webhookSubscriptionWorkflowId } from '../../domain/workflow-id.ts';
import { activityDeps } from '../support/activity.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { whileWritesFail } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { openSettlement } from '../support/settlement.ts';
import { ping, subscribe } from '../support/webhook.ts';

/** On a busy machine the service's time for a statement does not suffice for ten thousand copies. */
const COPIES_PER_STATEMENT = 1_000;
const MINUTE_MS = 60_000;

const test = withApi().extend('sweep', FILE, ({ api, partner }) => {
  const { pool } = api.connection;
  const running = new Set<string>();
  let asked = 0;
  const lanes = new Set(ALL_LANES.map(laneWorkflowId));
  const during: { happens?: (() => Promise<void>) | undefined; takesMs?: number } = {};
  const runs = {
    findRunning: async (workflowIds: readonly string[]) => {
      asked += workflowIds.filter((id) => !lanes.has(id)).length;
      const found = new Set([...running, ...lanes]);
      const { happens } = during;
      during.happens = undefined;
      await happens?.();
      if (vi.isFakeTimers()) vi.advanceTimersByTime(during.takesMs ?? 0);
      return found;
    },
  };
  const deps = { ...activityDeps(api), runs };
  const { restartLostRuns } = sweepActivities(deps);
  return {
    running,
    /** The lanes that run. */
    lanes,
    /**
     * `happens`: once, while Temporal is asked for the first time. `takesMs`: how long each answer takes, where the test
     * has the clock.
     */
    during,
    /** A sweep a minute from now. */
    run: (inMs = MINUTE_MS) => restartLostRuns({ nowMs: Date.now() + inMs }),
    /** A sweep that begins now, at its attempt so much later. */
    attemptAfter: (ms: number) =>
      new MockActivityEnvironment({ scheduledTimestampMs: 0, currentAttemptScheduledTimestampMs: ms }).run(
        restartLostRuns,
        { nowMs: Date.now() },
      ),
    /** An open settlement whose outbox row was dispatched. */
    open: async (): Promise<string> => {
      const id = await openSettlement(api, partner);
      await pool.query('DELETE FROM outbox');
      return id;
    },
    /** So many copies of a settlement, under ids that come before all others. */
    copy: async (settlementId: string, copies: number): Promise<void> => {
      for (let first = 1; first <= copies; first += COPIES_PER_STATEMENT)
        await pool.query(
          `INSERT INTO settlements SELECT (jsonb_populate_record(s, jsonb_build_object('settlement_id', 'copy_' || lpad(n::text, 6, '0')))).*
             FROM settlements s, generate_series($2::int, $3::int) n WHERE settlement_id = $1`,
          [settlementId, first, Math.min(first + COPIES_PER_STATEMENT - 1, copies)],
        );
    },
    /** Which settlements have an outbox row; the rows are dispatched. */
    takeQueued: async (): Promise<string[]> => {
      const { rows } = await pool.query('DELETE FROM outbox RETURNING object_id, signal');
      expect(rows.every(({ signal }) => signal === 'redispatched')).toBe(true);
      return rows.map(({ object_id }) => object_id).sort();
    },
    takeAsked: (): number => {
      const before = asked;
      asked = 0;
      return before;
    },
    restarted: async (): Promise<number> =>
      Number((await pool.query(`SELECT restarted FROM sweeps WHERE kind = 'settlement'`)).rows[0]?.restarted),
  };
});
test.afterEach(async ({ api, sweep }) => {
  vi.useRealTimers();
  delete sweep.during.takesMs;
  await api.owner.pool.query(`DELETE FROM settlements WHERE settlement_id LIKE 'copy_%'`);
  await api.connection.pool.query(`UPDATE sweeps SET after_id = ''`);
  sweep.running.clear();
});

describe('a sweep', () => {
  test('twice writes one outbox row; the second is not needed while the first is not dispatched', async ({ sweep }) => {
    const id = await sweep.open();
    const before = await sweep.restarted();
    expect(await sweep.run()).toEqual({ settlement: 1, verification: 0, webhook_subscription: 0, webhook_lane: 0 });
    expect(await sweep.run()).toEqual({ settlement: 0, verification: 0, webhook_subscription: 0, webhook_lane: 0 });
    expect(await sweep.takeQueued()).toEqual([id]);
    expect(await sweep.restarted()).toBe(before + 1);
    sweep.running.add(settlementWorkflowId(id));
    expect(await sweep.run()).toEqual({ settlement: 0, verification: 0, webhook_subscription: 0, webhook_lane: 0 });
  });

  test.for(['outbox', 'sweeps'])(
    'failing while it writes %s, changes nothing, and its retry completes it',
    async (table, { api, sweep }) => {
      await sweep.open();
      await expectUnchanged(api.connection.pool, async () => {
        await whileWritesFail(api.owner.pool, table, () => expect(sweep.run()).rejects.toThrow());
      });
      expect((await sweep.run()).settlement).toBeGreaterThan(0);
      await sweep.takeQueued();
    },
  );

  test('wakes a subscription again whose run should have looked for its retries ten minutes ago, once', async ({
    api,
    partner,
    sweep,
  }) => {
    const { pool } = api.connection;
    const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/');
    await ping(api, partner, webhookId);
    await pool.query('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', [webhookId]);
    sweep.running.add(webhookSubscriptionWorkflowId(webhookId));
    const wokenAfter = async (minutes: number) => {
      await pool.query(`UPDATE webhooks SET retries_at = now() - $2 * interval '1 minute' WHERE webhook_id = $1`, [
        webhookId,
        minutes,
      ]);
      await pool.query('DELETE FROM outbox');
      const { webhook_subscription: restarted } = await sweep.run();
      const sent = `DELETE FROM outbox WHERE object_id = $1 AND signal = 'retriesAdded' RETURNING 1`;
      const first = (await pool.query(sent, [webhookId])).rowCount;
      await sweep.run();
      return [restarted, first, (await pool.query(sent, [webhookId])).rowCount];
    };
    expect(await wokenAfter(9)).toEqual([0, 0, 0]);
    expect(await wokenAfter(11)).toEqual([0, 1, 0]);
    const end = `UPDATE webhook_deliveries SET status = 'skipped', next_attempt_at = NULL WHERE webhook_id = $1`;
    await pool.query(end, [webhookId]);
    expect(await wokenAfter(11)).toEqual([0, 0, 0]);
  });

  test('leaves to the dispatcher what has changed within fifteen seconds', async ({ sweep }) => {
    const id = await sweep.open();
    expect((await sweep.run(0)).settlement).toBe(0);
    await sweep.run();
    expect(await sweep.takeQueued()).toContain(id);
    sweep.running.add(settlementWorkflowId(id));
  });

  test('that is repeated a minute later starts a run that was too recent at the first attempt', async ({ sweep }) => {
    const id = await sweep.open();
    await sweep.attemptAfter(0);
    expect(await sweep.takeQueued()).not.toContain(id);
    await sweep.attemptAfter(MINUTE_MS);
    expect(await sweep.takeQueued()).toContain(id);
    sweep.running.add(settlementWorkflowId(id));
  });

  test('starts nothing again that has ended, or whose run has begun, since it was listed', async ({
    api,
    partner,
    sweep,
  }) => {
    const [ended, begun] = [await sweep.open(), await sweep.open()];
    sweep.during.happens = async () => {
      await api.call(partner, 'POST', `/v2/settle/${ended}/cancel`);
      await api.connection.pool.query('DELETE FROM outbox');
      sweep.running.add(settlementWorkflowId(begun));
    };
    await sweep.run();
    const queued = await sweep.takeQueued();
    expect([ended, begun].filter((id) => queued.includes(id))).toEqual([]);
  });

  test('starts a run again although a message of another kind about its object waits', async ({ api, sweep }) => {
    const id = await sweep.open();
    const { pool } = api.connection;
    await pool.query(
      `INSERT INTO outbox (kind, object_id, context, request_id) VALUES ('sandbox_collection', $1, '{}', 'test')`,
      [id],
    );
    await sweep.run();
    const { rows } = await pool.query('DELETE FROM outbox WHERE object_id = $1 RETURNING kind', [id]);
    expect(rows).toContainEqual({ kind: 'settlement' });
    sweep.running.add(settlementWorkflowId(id));
  });

  test('starts a thousand runs again at most, and the next one goes on from there', async ({ sweep }) => {
    await sweep.copy(await sweep.open(), 2_300);
    const found: string[] = [];
    for (const expected of [1_000, 1_000]) {
      expect((await sweep.run()).settlement).toBe(expected);
      found.push(...(await sweep.takeQueued()));
    }
    expect((await sweep.run()).settlement).toBeGreaterThan(300);
    found.push(...(await sweep.takeQueued()));
    expect(new Set(found).size).toBe(found.length);
    expect(found.filter((id) => id.startsWith('copy_'))).toHaveLength(2_300);
  });

  test('looks at ten thousand settlements at most, and the next one at the rest', async ({ sweep }) => {
    const id = await sweep.open();
    await sweep.copy(id, 10_050);
    for (let n = 1; n <= 10_050; n += 1) sweep.running.add(settlementWorkflowId(`copy_${String(n).padStart(6, '0')}`));
    vi.useFakeTimers({ toFake: ['performance'] });
    sweep.takeAsked();
    expect((await sweep.run()).settlement).toBe(0);
    expect(sweep.takeAsked()).toBe(10_000);
    expect((await sweep.run()).settlement).toBeGreaterThan(0);
    expect(await sweep.takeQueued()).toContain(id);
  });
});

test('a sweep ends in time while Temporal is slow, and the next one goes on from there', async ({ sweep }) => {
  const id = await sweep.open();
  await sweep.copy(id, 1_000);
  for (let n = 1; n <= 1_000; n += 1) sweep.running.add(settlementWorkflowId(`copy_${String(n).padStart(6, '0')}`));
  vi.useFakeTimers({ toFake: ['performance'] });
  sweep.during.takesMs = 1_000;
  sweep.takeAsked();
  expect((await sweep.run()).settlement).toBe(0);
  expect(sweep.takeAsked()).toBe(600);
  expect((await sweep.run()).settlement).toBeGreaterThan(0);
  expect(await sweep.takeQueued()).toContain(id);
});

test('a sweep starts a lane that does not run, once', async ({ api, sweep }) => {
  sweep.lanes.delete(laneWorkflowId(2));
  expect((await sweep.run()).webhook_lane).toBe(1);
  expect((await sweep.run()).webhook_lane).toBe(0);
  const { rows } = await api.connection.pool.query(
    `DELETE FROM outbox WHERE kind = 'webhook_lane' RETURNING object_id`,
  );
  expect(rows).toEqual([{ object_id: '2' }]);
  sweep.lanes.add(laneWorkflowId(2));
});

test('a sweep starts a lost lane and then fails, if Temporal does not list the runs of settlements', async ({
  api,
  sweep,
}) => {
  sweep.lanes.delete(laneWorkflowId(2));
  await sweep.open();
  sweep.during.happens = async () => {
    throw new Error('no list');
  };
  await expect(sweep.run()).rejects.toThrow('no list');
  const { rows } = await api.connection.pool.query('DELETE FROM outbox RETURNING kind, object_id');
  expect(rows).toContainEqual({ kind: 'webhook_lane', object_id: '2' });
  sweep.lanes.add(laneWorkflowId(2));
});

describe('a sweep of subscriptions', () => {
  const due = async (api: TestApi, partner: Caller, ago: string): Promise<string> => {
    const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/hook', ['webhook.ping']);
    await ping(api, partner, webhookId);
    const { pool } = api.connection;
    await pool.query(
      `UPDATE webhook_deliveries SET lane_key = NULL, next_attempt_at = now() + $2::interval WHERE webhook_id = $1`,
      [webhookId, ago],
    );
    return webhookId;
  };

  test('wakes one with a due retry and without a run, and no other', async ({ api, partner, sweep }) => {
    const [lost, running, later] = [
      await due(api, partner, '-20 seconds'),
      await due(api, partner, '-20 seconds'),
      await due(api, partner, '1 hour'),
    ];
    sweep.running.add(webhookSubscriptionWorkflowId(running));
    const woken = async (): Promise<string[]> => {
      const { rows } = await api.connection.pool.query(
        `SELECT object_id FROM outbox WHERE kind = 'webhook_subscription' AND object_id = ANY ($1)`,
        [[lost, running, later]],
      );
      return rows.map(({ object_id }) => object_id);
    };
    expect((await sweep.run()).webhook_subscription).toBe(1);
    expect(await woken()).toEqual([lost]);
    expect((await sweep.run()).webhook_subscription).toBe(0);
    await api.connection.pool.query('DELETE FROM outbox');
    await api.connection.pool.query(
      `UPDATE webhook_deliveries SET status = 'canceled', next_attempt_at = NULL, lane_key = NULL`,
    );
  });
});
