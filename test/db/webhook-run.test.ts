/**
 * The handshake between those who write deliveries and the run that looks for them: nothing is forgotten, and a busy
 * subscription is not woken. And what takes the same time however much is pending.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { fc } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { deleteWebhook } from '../../db/commands/webhook.ts';
import { recordEvent } from '../../db/queries/event.ts';
import { claimOutbox, deleteOutbox, type OutboxRow, postponeOutbox } from '../../db/queries/outbox.ts';
import { claimDue, endDeliveries, lookOnceMore, openRun } from '../../db/queries/webhook-run.ts';
import type { TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { stretched } from '../support/patience.ts';
import { subscribe } from '../support/webhook.ts';

/** Each test has an organization and a subscription of its own. */
const test = withApi().extend('world', ({ api }) => createWorld(api));

async function createWorld(api: TestApi) {
  const { db, pool } = api.connection;
  const owner = await api.createCaller();
  const webhook = await subscribe(api, owner, 'http://127.0.0.1:9999/hook');
  const webhookId: string = webhook.webhook_id;
  const rowsOf = async (text: string, ...values: unknown[]) => (await pool.query(text, values)).rows;
  const event = {
    orgId: owner.orgId,
    objectType: 'webhook',
    objectId: webhookId,
    type: 'webhook.ping',
    data: {},
    at: new Date(),
    requestId: 'test',
  } as const;
  return {
    api,
    owner,
    webhookId,
    rowsOf,
    /** Writes an event with its delivery. @param hold what is awaited before the commit */
    write: (hold: () => Promise<unknown> = async () => undefined) =>
      db.transaction(async (tx) => {
        await recordEvent(tx, event);
        await hold();
      }),
    wakeRows: async (): Promise<number> =>
      (await rowsOf('SELECT 1 FROM outbox WHERE object_id = $1', webhookId)).length,
    /** Claims the rows of this subscription, as a dispatcher does. */
    claimWakeRows: async (): Promise<OutboxRow[]> => {
      const rows = await claimOutbox(db, 1_000);
      return rows.filter(({ objectId }) => objectId === webhookId);
    },
    removeWakeRows: (rows: readonly OutboxRow[]) =>
      deleteOutbox(
        db,
        rows.map(({ outboxId }) => outboxId),
      ),
    open: () => openRun(db, webhookId),
    look: () => db.transaction((tx) => lookOnceMore(tx, webhookId, new Date())),
    claim: async (run: number): Promise<number> =>
      (await claimDue(db, webhookId, { run, now: new Date(), limit: 100 })).claimed.length,
    /** Takes the claimed deliveries out of the way, as recorded results do. */
    finish: () =>
      pool.query(
        `UPDATE webhook_deliveries SET status = 'succeeded', next_attempt_at = NULL
         WHERE webhook_id = $1 AND claimed_by > 0 AND status = 'pending'`,
        [webhookId],
      ),
    /** So many pending deliveries of one event, due in an hour, to copies of it. */
    fill: async (count: number): Promise<void> => {
      const filler = await api.owner.pool.connect();
      // Without foreign keys, which would take minutes.
      await filler.query('SET statement_timeout = 0; SET session_replication_role = replica');
      await filler.query(
        `WITH event AS (
           INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
           SELECT 'many-' || $2 || '-' || n, $1, 'webhook.ping', 'webhook', $2, 1000 + n, ''::bytea, now()
           FROM generate_series(1, $3::int) n RETURNING event_id
         )
         INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
           requested, prior_attempts, next_attempt_at, endings, request_id, created_at)
         SELECT 'delivery-' || event_id, $1, $2, event_id, 'webhook.ping', 'pending', 1, false, 0,
           now() + interval '1 hour', 0, 'many', now() FROM event`,
        [owner.orgId, webhookId, count],
      );
      await filler.query('ANALYZE webhook_deliveries');
      filler.release(true);
    },
  };
}

describe('a transaction that writes a delivery', () => {
  test('wakes a subscription without a run, and none with one', async ({ world }) => {
    await world.write();
    expect(await world.wakeRows()).toBe(1);
    await world.removeWakeRows(await world.claimWakeRows());
    const { run } = await world.open();
    await world.write();
    expect([await world.wakeRows(), await world.claim(run)]).toEqual([0, 2]);
  });

  test('is seen by the last look, which does not end the run while the transaction is open', async ({ world }) => {
    const { run } = await world.open();
    let commit = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let isWritten = false;
    const writing = world.write(async () => {
      isWritten = true;
      await held;
    });
    await expect.poll(() => isWritten).toBe(true);
    expect(await world.look()).toBeUndefined();
    commit();
    await writing;
    expect(await world.look()).toMatchObject({ hasWork: true, pending: 1 });
    expect([await world.wakeRows(), await world.claim(run)]).toEqual([0, 1]);
  });

  test('wakes the subscription after the last look', async ({ world }) => {
    await world.open();
    expect(await world.look()).toMatchObject({ hasWork: false, nextAttemptAt: null });
    await world.write();
    expect(await world.wakeRows()).toBe(1);
  });

  test('reads the flag that a last look has cleared, if it waits for that look', async ({ world, api }) => {
    await world.open();
    const holder = await api.connection.pool.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT 1 FROM webhook_runs WHERE webhook_id = $1 FOR NO KEY UPDATE', [world.webhookId]);
    const writing = world.write();
    await delay(50);
    await holder.query('UPDATE webhook_runs SET running = false WHERE webhook_id = $1', [world.webhookId]);
    await holder.query('COMMIT');
    holder.release();
    await writing;
    expect(await world.wakeRows()).toBe(1);
  });
});

describe('the row of a subscription in the outbox', () => {
  test('is one, however many events are committed', async ({ world }) => {
    await Promise.all(Array.from({ length: 8 }, () => world.write()));
    expect(await world.wakeRows()).toBe(1);
  });

  test('does not serve later commits once a dispatcher has claimed it', async ({ world }) => {
    await world.write();
    const claimed = await world.claimWakeRows();
    await world.write();
    await world.removeWakeRows(claimed);
    expect(await world.wakeRows()).toBe(1);
  });

  test('returns after a failed dispatch, and is dropped when another was written meanwhile', async ({ world, api }) => {
    await world.write();
    const [first] = await world.claimWakeRows();
    await postponeOutbox(api.connection.db, [first?.outboxId ?? 0], 'test');
    expect(await world.rowsOf('SELECT claimed, last_error FROM outbox WHERE object_id = $1', world.webhookId)).toEqual([
      { claimed: false, last_error: 'test' },
    ]);
    await world.rowsOf('UPDATE outbox SET due_at = now() WHERE object_id = $1', world.webhookId);
    const again = await world.claimWakeRows();
    await world.write();
    await postponeOutbox(
      api.connection.db,
      again.map(({ outboxId }) => outboxId),
      'test',
    );
    expect(await world.wakeRows()).toBe(1);
  });

  test('is claimed after those of settlements, and still claimed in time', async ({ world, api }) => {
    await world.write();
    await world.rowsOf(
      `INSERT INTO outbox (kind, object_id, context, request_id)
       SELECT 'otp', 'o' || n, '{}', 'test' FROM generate_series(1, 100) n`,
    );
    const rows = await claimOutbox(api.connection.db, 32);
    const kinds = rows.map(({ kind }) => kind);
    expect(kinds.length).toBeLessThanOrEqual(32);
    expect(kinds.indexOf('webhook_subscription')).toBeGreaterThanOrEqual(28);
    await world.rowsOf(`DELETE FROM outbox`);
  });
});

describe('no wake-up is lost', () => {
  const write = fc.record({ atMs: fc.integer({ min: 0, max: 50 }), holdMs: fc.integer({ min: 0, max: 15 }) });
  const scenario = fc.record({
    writes: fc.array(write, { minLength: 1, maxLength: 6 }),
    /** What becomes of each dispatch, and of each run; `done` once the list has ended. */
    dispatches: fc.array(fc.constantFrom('done', 'done', 'refused', 'killed'), { maxLength: 4 }),
    runs: fc.array(fc.constantFrom('done', 'done', 'killed'), { maxLength: 4 }),
    /** Between the signal and the removal of its row. */
    callMs: fc.integer({ min: 0, max: 60 }),
  });
  type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

  /** @returns how many deliveries are still pending when everything is quiet */
  async function play(api: TestApi, { writes, dispatches, runs, callMs }: Scenario): Promise<number> {
    const world = await createWorld(api);
    let isWoken = false;
    let workflow: Promise<void> | undefined;
    const round = async (): Promise<void> => {
      const { run } = await world.open();
      // Temporal repeats the activity of a killed worker.
      if (runs.shift() === 'killed') {
        await world.claim(run);
        return await round();
      }
      for (;;) {
        await world.claim(run);
        await world.finish();
        if ((await world.look())?.hasWork === false) return;
        await delay(1);
      }
    };
    const loop = async (): Promise<void> => {
      while (isWoken) {
        isWoken = false;
        await round();
      }
      workflow = undefined;
    };
    const dispatch = async (): Promise<void> => {
      await world.rowsOf('UPDATE outbox SET due_at = now() WHERE object_id = $1', world.webhookId);
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
    let writing = writes.length;
    const dispatchAll = async (): Promise<void> => {
      while (writing > 0 || workflow || (await world.wakeRows()) > 0) {
        await dispatch();
        await delay(1);
      }
    };
    const writeOne = async ({ atMs, holdMs }: { atMs: number; holdMs: number }): Promise<void> => {
      await delay(atMs);
      await world.write(() => delay(holdMs));
      writing -= 1;
    };
    await Promise.all([dispatchAll(), ...writes.map(writeOne)]);
    const pending = await world.rowsOf(
      `SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'pending'`,
      world.webhookId,
    );
    return pending.length;
  }

  test('whatever writers, dispatchers and runs do at once, and wherever they are killed', async ({ api }) => {
    await fc.assert(
      fc.asyncProperty(scenario, async (given) => {
        expect(await play(api, given)).toBe(0);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a subscription with 300 000 pending deliveries', () => {
  test('disabling, rotating, enabling and deleting take less than a second and write one outbox row', async ({
    world,
    api,
  }) => {
    await world.fill(300_000);
    const { webhookId, owner } = world;
    const timed = async (run: () => Promise<{ statusCode: number }>): Promise<void> => {
      const startedMs = performance.now();
      expect((await run()).statusCode).toBeLessThan(300);
      expect(performance.now() - startedMs).toBeLessThan(stretched(1_000));
    };
    const change = (status: string) => () => api.call(owner, 'PATCH', `/v1/webhooks/${webhookId}`, { status });
    await timed(change('disabled'));
    const shown = await api.call(owner, 'GET', `/v1/webhooks/${webhookId}/deliveries?limit=2`);
    expect(jsonOf(shown)).toMatchObject([
      { status: 'skipped', next_attempt_at: null },
      { status: 'skipped', next_attempt_at: null },
    ]);
    await timed(() => api.call(owner, 'POST', `/v1/webhooks/${webhookId}/rotate-secret`));
    await timed(change('enabled'));
    // What is committed now is delivered; what had ended stays ended.
    await world.write();
    const { run } = await world.open();
    expect(await world.claim(run)).toBe(1);
    await timed(() => api.call(owner, 'DELETE', `/v1/webhooks/${webhookId}`));
    expect(await world.wakeRows()).toBe(1);
    for (let step = 0; step < 10; step += 1) {
      const startedMs = performance.now();
      expect(await endDeliveries(api.connection.db, webhookId)).toBe(true);
      expect(performance.now() - startedMs).toBeLessThan(stretched(2_000));
    }
    const counts = await world.rowsOf(
      'SELECT status, count(*)::int AS count FROM webhook_deliveries WHERE webhook_id = $1 GROUP BY 1 ORDER BY 1',
      webhookId,
    );
    expect(counts).toEqual([
      { status: 'canceled', count: 10_000 },
      { status: 'pending', count: 290_001 },
    ]);
    expect(await world.look()).toMatchObject({ hasWork: true, status: 'deleted', pending: 0 });
  });

  test('the statements of a run read by index, not all that is pending', async ({ world, api }) => {
    await world.fill(20_000);
    await world.write();
    const { run } = await world.open();
    const startedMs = performance.now();
    for (let n = 0; n < 5; n += 1) {
      await world.claim(run);
      await world.look();
    }
    expect(performance.now() - startedMs).toBeLessThan(stretched(1_000));
    await deleteWebhook(api.deps, world.owner.orgId, world.webhookId, 'test');
  });
});
