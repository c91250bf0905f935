/** Events and their deliveries are kept for 90 days at least, against every role, and are then deleted in steps. */
import { describe, expect } from 'vitest';
import { sweepActivities } from '../../activities/sweep.ts';
import { newId } from '../../db/id.ts';
import { deleteExpiredEvents } from '../../db/queries/event-retention.ts';
import { EVENT_RETENTION } from '../../domain/event.ts';
import { activityDeps } from '../support/activity.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { raceBehind } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { subscribe } from '../support/webhook.ts';

const DAYS = EVENT_RETENTION.daysMin;
const HOUR = 1 / 24;
const REFUSED = { code: '23001' };
const DENIED = { code: '42501' };

const test = withApi().extend('world', async ({ api }) => {
  const caller = await api.createCaller();
  const webhook = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
  return createWorld(api, caller, webhook.webhook_id);
});
test.afterEach(({ world }) => world.clear());

function createWorld(api: TestApi, caller: Caller, webhookId: string) {
  const { pool } = api.connection;
  const ids = async (table: string, id = 'event_id'): Promise<string[]> =>
    (await pool.query(`SELECT ${id} AS id FROM ${table} WHERE org_id = $1`, [caller.orgId])).rows.map((row) => row.id);
  return {
    caller,
    /** An event of that age in days, with a delivery and its one attempt. @returns its id */
    add: async (daysAgo: number, status = 'succeeded'): Promise<string> => {
      const id = newId();
      const inserted = [id, caller.orgId, webhookId, daysAgo, status];
      await pool.query(
        `WITH given AS (
           SELECT $1::text AS event_id, $2::text AS org_id, $3::text AS webhook_id, $5::text AS status,
             now() - $4::float8 * interval '24 hours' AS at
         ), event AS (
           INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
           SELECT event_id, org_id, 'settlement.settled', 'settlement', event_id, 1, '{}'::bytea, at FROM given
         ), delivery AS (
           INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
             prior_attempts, attempt_count, next_attempt_at, endings, request_id, created_at)
           SELECT event_id, org_id, webhook_id, event_id, 'settlement.settled', status, 1, 0, 1,
             CASE WHEN status = 'pending' THEN now() + interval '1 hour' END, 0, 'test', at FROM given
         )
         INSERT INTO webhook_attempts (delivery_id, number, at, outcome, duration_ms)
         SELECT event_id, 1, at, 'succeeded', 1 FROM given`,
        inserted,
      );
      return id;
    },
    events: () => ids('events'),
    deliveries: () => ids('webhook_deliveries'),
    attempts: async (): Promise<number> =>
      Number(
        (
          await pool.query(
            'SELECT count(*) FROM webhook_attempts JOIN webhook_deliveries USING (delivery_id) WHERE webhook_id = $1',
            [webhookId],
          )
        ).rows[0].count,
      ),
    expire: (days: number = DAYS) => deleteExpiredEvents(api.connection.db, days),
    /** Without triggers, so that no test finds the events of another one. */
    clear: async () => {
      const cleaner = await api.owner.pool.connect();
      await cleaner.query(
        `SET session_replication_role = replica;
         DELETE FROM webhook_attempts; DELETE FROM webhook_deliveries; DELETE FROM events`,
      );
      cleaner.release(true);
    },
  };
}

describe('an event of 90 days ago', () => {
  test('goes with its deliveries and attempts, and a younger one stays with its own', async ({ api, world }) => {
    const [old, young] = [await world.add(DAYS + HOUR), await world.add(DAYS - HOUR)];
    const before = await world.events();
    expect(await world.expire()).toBe(1);
    expect(await world.events()).toEqual(before.filter((id) => id !== old));
    expect([await world.deliveries(), await world.attempts()]).toEqual([[young], 1]);
    expect((await api.call(world.caller, 'GET', `/v1/events/${old}`)).statusCode).toBe(404);
  });

  test('stays for as long as is configured', async ({ world }) => {
    const old = await world.add(DAYS + 10);
    expect([await world.expire(DAYS + 11), await world.expire(DAYS + 9)]).toEqual([0, 1]);
    expect(await world.events()).not.toContain(old);
  });

  test('stays while a delivery of it is pending', async ({ world }) => {
    const old = await world.add(DAYS + 1, 'pending');
    expect(await world.expire()).toBe(0);
    expect([await world.events(), await world.deliveries()]).toEqual([expect.arrayContaining([old]), [old]]);
  });

  test('stays when a redelivery of it is committed while it is being deleted', async ({ api, world }) => {
    const old = await world.add(DAYS + 1);
    const [deleted] = await raceBehind(
      api.owner.pool,
      {
        hold: (holder) =>
          holder.query(
            `UPDATE webhook_deliveries SET status = 'pending', next_attempt_at = now() WHERE delivery_id = $1`,
            [old],
          ),
      },
      [() => world.expire()],
    );
    expect([deleted, await world.deliveries(), await world.attempts()]).toEqual([0, [old], 1]);
  });

  test('goes with the next sweep, which deletes a bounded number, the oldest first', async ({ api, world }) => {
    const [other] = [await world.add(DAYS + 1), await world.add(DAYS + 2)];
    const { rows } = await api.connection.pool.query('SELECT delete_expired_events($1, 1) AS deleted', [DAYS]);
    expect([rows[0].deleted, await world.deliveries()]).toEqual([1, [other]]);
    const deps = activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined });
    await sweepActivities(deps).restartLostRuns({ nowMs: Date.now() });
    expect(await world.deliveries()).toEqual([]);
  });

  test('goes with one sweep, also when the sweep needs several steps', async ({ api, world }) => {
    await world.add(DAYS + 1);
    const { rows } = await api.owner.pool.query(
      `INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
       SELECT gen_random_uuid(), org_id, type, object_type, gen_random_uuid(), 1, body, created_at
       FROM events CROSS JOIN generate_series(1, $1) WHERE created_at < now() - interval '90 days' RETURNING 1`,
      [2 * EVENT_RETENTION.deletedMax],
    );
    expect(rows).toHaveLength(2 * EVENT_RETENTION.deletedMax);
    const deps = activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined });
    await sweepActivities(deps).restartLostRuns({ nowMs: Date.now() });
    expect(await world.expire()).toBe(0);
  });

  test('goes once when two sweeps run at once', async ({ world }) => {
    for (let count = 0; count < 20; count += 1) await world.add(DAYS + 1);
    const deleted = await Promise.all([world.expire(), world.expire(), world.expire()]);
    expect(deleted.reduce((sum, count) => sum + count, 0)).toBe(20);
  });
});

describe('an event of less than 90 days ago', () => {
  const TABLES = ['events', 'webhook_deliveries', 'webhook_attempts'];

  test.for(TABLES)('cannot be deleted from %s by the owner of the tables', async (table, { api, world }) => {
    await world.add(DAYS - HOUR);
    await expect(api.owner.pool.query(`DELETE FROM ${table}`)).rejects.toMatchObject(REFUSED);
    expect([(await world.deliveries()).length, await world.attempts()]).toEqual([1, 1]);
  });

  test.for([...TABLES.map((table) => `TRUNCATE ${table} CASCADE`), `UPDATE events SET created_at = '2020-01-01'`])(
    'is not reached by the owner with %s',
    async (statement, { api, world }) => {
      await world.add(1);
      await expect(api.owner.pool.query(statement)).rejects.toMatchObject(REFUSED);
    },
  );

  test.for(TABLES.map((table) => `DELETE FROM ${table}`))(
    'cannot be deleted by the service with %s, however old',
    async (statement, { api, world }) => {
      await world.add(DAYS + 1);
      await expect(api.connection.pool.query(statement)).rejects.toMatchObject(DENIED);
    },
  );

  test.for([
    [89, 10],
    [0, 10],
    [-1, 10],
    [-2_147_483_648, 10],
    [null, 10],
    [DAYS, null],
    [DAYS, 0],
    [DAYS, -1],
    [DAYS, 10_001],
  ])('stays when the function is called with %s days and %s rows', async ([days, rowsMax], { api, world }) => {
    const ids = [await world.add(DAYS - HOUR), await world.add(DAYS + HOUR)];
    const call = api.connection.pool.query('SELECT delete_expired_events($1, $2)', [days, rowsMax]);
    await expect(call).rejects.toMatchObject({ code: '22023' });
    expect((await world.deliveries()).sort()).toEqual(ids.sort());
  });

  test.for([2_147_483_647, 1_000_000])(
    'stays when the function is called with %s days',
    async (days, { api, world }) => {
      await world.add(DAYS - HOUR);
      await api.connection.pool.query('SELECT delete_expired_events($1, 10)', [days]).catch(() => undefined);
      expect(await world.deliveries()).toHaveLength(1);
    },
  );

  test('stays when the caller puts a relation of its own before the tables', async ({ api, world }) => {
    await world.add(DAYS - HOUR);
    const client = await api.connection.pool.connect();
    try {
      // The deployed role can make none of these (privilege.test.ts); the path would be ignored anyway.
      await client.query(`SET search_path = pg_temp, drizzle, public`);
      expect((await client.query('SELECT public.delete_expired_events(90, 10) AS deleted')).rows[0].deleted).toBe(0);
    } finally {
      client.release(true);
    }
    expect(await world.deliveries()).toHaveLength(1);
  });
});
