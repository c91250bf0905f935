/**
 * What only grows is kept for 90 days at least, against every role. Then deliveries go by rows, and the rest by months.
 */
import type pg from 'pg';
import { v7 } from 'uuid';
import { describe, expect } from 'vitest';
import type { ActivityDeps } from '../../activities/deps.ts';
import { sweepActivities } from '../../activities/sweep.ts';
import { countStates } from '../../db/queries/metric.ts';
import { deleteOldChallenges } from '../../db/queries/otp.ts';
import {
  addPartitions,
  deleteExpiredDeliveries,
  dropExpiredPartition,
  listPartitions,
} from '../../db/queries/retention.ts';
import { DELIVERIES_DELETED_MAX, PARTITIONS_AHEAD, RETENTION } from '../../domain/retention.ts';
import { activityDeps } from '../support/activity.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { signIn } from '../support/consumer.ts';
import { whileLocked, withoutTriggers } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { dropComingMonths, startMonthsAgo } from '../support/months.ts';
import { jsonOf } from '../support/partner.ts';
import { MINUTE_ENDS, stretched } from '../support/patience.ts';
import { subscribe } from '../support/webhook.ts';

const DAYS = RETENTION.events.daysMin;
const HOUR = 1 / 24;
const DAY_MS = 86_400_000;
/** Old enough that its whole month is past its time. */
const MONTHS_AGO = DAYS + 35;
const KEPT = { events: DAYS, quotes: 1 };
const REFUSED = { code: '23001' };
const DENIED = { code: '42501' };
const MISSING = { code: '42883' };

const test = withApi().extend('world', FILE, async ({ api }) => {
  const caller = await api.createCaller();
  const webhook = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
  return createWorld(api, caller, webhook.webhook_id);
});
test.afterEach(({ world }) => world.clear());

function createWorld(api: TestApi, caller: Caller, webhookId: string) {
  const { pool, db } = api.connection;
  const added: string[] = [];
  const ofAdded = async (table: string, id: string): Promise<string[]> =>
    (await pool.query(`SELECT ${id} AS id FROM ${table} WHERE ${id} = ANY ($1) ORDER BY 1`, [added])).rows.map(
      (row) => row.id,
    );
  return {
    caller,
    /**
     * An event of that age in days, with a delivery and its one attempt, and a quote.
     *
     * @param idEarlierMs by how much the time of its id is before that of its row
     * @returns the id of all of them
     */
    add: async (daysAgo: number, status = 'succeeded', idEarlierMs = 0): Promise<string> => {
      const id = v7({ msecs: Date.now() - daysAgo * DAY_MS - idEarlierMs });
      added.push(id);
      await pool.query(
        `WITH given AS (
           SELECT $1::text AS id, $2::text AS org_id, $3::text AS webhook_id, $5::text AS status,
             now() - $4::float8 * interval '24 hours' AS at
         ), event AS (
           INSERT INTO events (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
           SELECT id, org_id, 'settlement.settled', 'settlement', id, 1, '{}'::bytea, at FROM given
         ), delivery AS (
           INSERT INTO webhook_deliveries (delivery_id, org_id, webhook_id, event_id, event_type, status, generation,
             prior_attempts, attempt_count, next_attempt_at, endings, request_id, created_at)
           SELECT id, org_id, webhook_id, id, 'settlement.settled', status, 1, 0, 1,
             CASE WHEN status = 'pending' THEN now() + interval '1 hour' END, 0, 'old', at FROM given
         ), attempt AS (
           INSERT INTO webhook_attempts (delivery_id, number, at, outcome, duration_ms)
           SELECT id, 1, at, 'succeeded', 1 FROM given
         )
         INSERT INTO quotes (quote_id, org_id, corridor, amount_minor, source_currency, payment_method, payout_rail,
           created_at, expires_at)
         SELECT id, org_id, 'US-JM', 10000, 'USD', 'card', 'bank_transfer', at, at + interval '30 seconds' FROM given`,
        [id, caller.orgId, webhookId, daysAgo, status],
      );
      return id;
    },
    deliveries: async (): Promise<string[]> =>
      (
        await pool.query(`SELECT delivery_id AS id FROM webhook_deliveries WHERE request_id = 'old' ORDER BY 1`)
      ).rows.map((row) => row.id),
    events: () => ofAdded('events', 'event_id'),
    attempts: () => ofAdded('webhook_attempts', 'delivery_id'),
    quotes: () => ofAdded('quotes', 'quote_id'),
    expire: (days: number = DAYS) => deleteExpiredDeliveries(db, days),
    /** Drops until nothing is left to drop. @returns the names */
    drop: async (days = KEPT): Promise<string[]> => {
      const dropped: string[] = [];
      for (;;) {
        const name = await dropExpiredPartition(db, days);
        if (name === null) return dropped;
        dropped.push(name);
      }
    },
    sweep: (given: Partial<ActivityDeps> = {}, temporalAheadMs = 0) =>
      sweepActivities({
        ...activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }),
        ...given,
      }).restartLostRuns({ nowMs: Date.now() + temporalAheadMs }),
    overdueDays: async () =>
      (await countStates(db, { runtime: 'local-sandbox', now: new Date(), retentionDays: KEPT })).retentionOverdueDays,
    /** Without triggers, so that no test finds the rows of another one. */
    clear: () =>
      withoutTriggers(api.owner.pool, (owner) =>
        owner.query(
          'DELETE FROM webhook_attempts; DELETE FROM webhook_deliveries; DELETE FROM events; DELETE FROM quotes',
        ),
      ),
  };
}

describe('a delivery of 90 days ago', () => {
  test('is deleted, and a younger one stays', async ({ world }) => {
    const [, young] = [await world.add(DAYS + HOUR), await world.add(DAYS - HOUR)];
    expect(await world.expire()).toBe(1);
    expect(await world.deliveries()).toEqual([young]);
  });

  test('stays until its row is old enough, also if its id is older, and does not make the sweep fail', async ({
    world,
  }) => {
    const young = await world.add(DAYS - HOUR, 'succeeded', 2 * HOUR * DAY_MS);
    await world.add(DAYS + HOUR);
    await world.sweep();
    expect(await world.deliveries()).toEqual([young]);
  });

  test('is as old in every time zone: no function counts days, which have 25 hours where clocks change', async ({
    api,
  }) => {
    const { rows } = await api.owner.pool.query(
      `SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosrc ~ 'interval ''[0-9]+ day|days =>'`,
    );
    expect(rows).toEqual([]);
  });

  test('stays for as long as is configured, up to a hundred years', async ({ world }) => {
    await world.add(DAYS + 10);
    expect(await world.expire(RETENTION.events.daysMax)).toBe(0);
    expect([await world.expire(DAYS + 11), await world.expire(DAYS + 9)]).toEqual([0, 1]);
  });

  test('stays while it is pending', async ({ world }) => {
    const old = await world.add(DAYS + 1, 'pending');
    expect([await world.expire(), await world.deliveries()]).toEqual([0, [old]]);
  });

  test('stays when a redelivery of it is committed while it is being deleted', async ({ api, world }) => {
    const old = await world.add(DAYS + 1);
    const again = `UPDATE webhook_deliveries SET status = 'pending', next_attempt_at = now() WHERE delivery_id = $1`;
    const holder = await api.owner.pool.connect();
    await holder.query('BEGIN');
    await holder.query(again, [old]);
    expect(await world.expire()).toBe(0);
    await holder.query('COMMIT');
    holder.release();
    expect([await world.expire(), await world.deliveries()]).toEqual([0, [old]]);
  });

  test('is deleted by the next step, which deletes a bounded number, the oldest first', async ({ api, world }) => {
    const [other] = [await world.add(DAYS + 1), await world.add(DAYS + 2)];
    const { rows } = await api.connection.pool.query('SELECT delete_expired_deliveries($1, 1) AS deleted', [DAYS]);
    expect([rows[0].deleted, await world.deliveries()]).toEqual([1, [other]]);
    await world.sweep();
    expect(await world.deliveries()).toEqual([]);
  });

  test('is deleted by one sweep, also when the sweep needs several steps', async ({ api, world }) => {
    const old = await world.add(DAYS + 1);
    const copied = await api.owner.pool.query(
      `INSERT INTO webhook_deliveries SELECT (jsonb_populate_record(d, jsonb_build_object(
         'delivery_id', new_id_with(delivery_id), 'event_id', new_id_with(delivery_id)))).*
       FROM webhook_deliveries d, generate_series(1, $2) WHERE delivery_id = $1`,
      [old, 2 * DELIVERIES_DELETED_MAX],
    );
    expect(copied.rowCount).toBe(2 * DELIVERIES_DELETED_MAX);
    await world.sweep();
    expect(await world.deliveries()).toEqual([]);
  });

  test('is counted as kept for too long until it is deleted', async ({ world }) => {
    await world.add(DAYS - HOUR);
    expect(await world.overdueDays()).toBe(0);
    await world.add(DAYS + 3);
    expect(await world.overdueDays()).toBeCloseTo(3, 2);
    await world.expire();
    expect(await world.overdueDays()).toBe(0);
  });

  test('is deleted once when several sweeps run at once', async ({ world }) => {
    for (let count = 0; count < 20; count += 1) await world.add(DAYS + 1);
    const deleted = await Promise.all([world.expire(), world.expire(), world.expire()]);
    expect(deleted.reduce((sum, count) => sum + count, 0)).toBe(20);
  });
});

describe('what is younger than 90 days', () => {
  const TABLES = ['events', 'webhook_deliveries', 'webhook_attempts', 'quotes'];

  test.for(TABLES)('cannot be deleted from %s by the owner of the tables', async (table, { api, world }) => {
    await world.add(DAYS - HOUR);
    await expect(api.owner.pool.query(`DELETE FROM ${table}`)).rejects.toMatchObject(REFUSED);
    expect([await world.deliveries(), await world.attempts()].map((found) => found.length)).toEqual([1, 1]);
  });

  test.for([
    ...TABLES.map((table) => `TRUNCATE ${table} CASCADE`),
    `UPDATE events SET created_at = '2020-01-01'`,
    `UPDATE webhook_attempts SET outcome = 'failed'`,
    `UPDATE quotes SET amount_minor = 1`,
  ])('is not reached by the owner with %s', async (statement, { api, world }) => {
    await world.add(1);
    await expect(api.owner.pool.query(statement)).rejects.toMatchObject(REFUSED);
  });

  test.for(['DELETE FROM %I', 'TRUNCATE %I'])(
    'is not reached by the owner in its partition with %s',
    async (statement, { api, world }) => {
      await world.add(1);
      const find = `SELECT format($1, tableoid::regclass) AS text FROM events LIMIT 1`;
      const { rows } = await api.owner.pool.query(find, [statement]);
      await expect(api.owner.pool.query(rows[0].text)).rejects.toMatchObject(REFUSED);
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
    'delete_expired_deliveries(89, 10)',
    'delete_expired_deliveries(0, 10)',
    'delete_expired_deliveries(-2147483648, 10)',
    'delete_expired_deliveries(NULL, 10)',
    'delete_expired_deliveries(90, NULL)',
    'delete_expired_deliveries(90, 0)',
    'delete_expired_deliveries(90, 10001)',
    'drop_expired_partition(89, 1)',
    'drop_expired_partition(NULL, 1)',
    'drop_expired_partition(90, 0)',
    'drop_expired_partition(90, NULL)',
  ])('stays when the service calls %s', async (call, { api, world }) => {
    const ids = [await world.add(DAYS - HOUR), await world.add(DAYS + HOUR)];
    await expect(api.connection.pool.query(`SELECT ${call}`)).rejects.toMatchObject({ code: '22023' });
    expect([await world.deliveries(), await world.events()]).toEqual([ids.sort(), ids]);
  });

  test.for([2_147_483_647, 1_000_000])('stays when the service asks for %s days', async (days, { api, world }) => {
    await world.add(DAYS - HOUR);
    for (const call of ['delete_expired_deliveries($1, 10)', 'drop_expired_partition($1, $1)'])
      await api.connection.pool.query(`SELECT ${call}`, [days]).catch(() => undefined);
    expect([await world.deliveries(), await world.events()].map((found) => found.length)).toEqual([1, 1]);
  });

  test('stays when the caller puts a relation of its own before the tables', async ({ api, world }) => {
    await world.add(DAYS - HOUR);
    const client = await api.connection.pool.connect();
    try {
      // The deployed role can make none of these (privilege.test.ts); the path would be ignored anyway.
      await client.query(`SET search_path = pg_temp, drizzle, public`);
      expect((await client.query('SELECT public.delete_expired_deliveries(90, 10) AS deleted')).rows[0].deleted).toBe(
        0,
      );
    } finally {
      client.release(true);
    }
    expect(await world.deliveries()).toHaveLength(1);
  });
});

test('codes, sessions, secrets and link tokens that have expired are deleted, whatever the clocks of worker and Temporal say', async ({
  api,
  world,
}) => {
  const { pool } = api.owner;
  const aheadMs = 2 * 86_400_000;
  const asked: string[] = [];
  for (const email of ['old@person.example', 'new@person.example'])
    asked.push(jsonOf(await api.call(null, 'POST', '/consumer/auth/request-otp', { email })).challenge_id);
  const [oldCode, newCode] = asked;
  await pool.query(
    `UPDATE otp_challenges SET created_at = created_at - interval '61 minutes' WHERE challenge_id = $1`,
    [oldCode],
  );
  await pool.query(
    `INSERT INTO idempotency_secrets (org_id, key, body_sealed, expires_at)
     VALUES ($1, 'old', 'sealed', now() - interval '1 second'), ($1, 'new', 'sealed', now() + interval '1 hour')`,
    [world.caller.orgId],
  );
  await pool.query(
    `INSERT INTO webhook_earlier_secrets (webhook_id, secret_id, secret_sealed, expires_at)
     SELECT webhook_id, id, 'sealed', now() + hours * interval '1 hour'
     FROM webhooks, (VALUES ('old secret', -1), ('new secret', 1)) AS s (id, hours) WHERE org_id = $1`,
    [world.caller.orgId],
  );
  await pool.query(
    `INSERT INTO banklink_tokens (token_hash, org_id, created_at, expires_at)
     SELECT id::bytea, $1, now(), now() + seconds * interval '1 second'
     FROM (VALUES ('old token', -1), ('new token', 1800)) AS t (id, seconds)`,
    [world.caller.orgId],
  );
  const { consumerId } = await signIn(api);
  await pool.query(
    `INSERT INTO consumer_sessions (session_id, consumer_id, token_hash, created_at, expires_at)
     VALUES ('old session', $1, 'old', now(), now() - interval '1 second')`,
    [consumerId],
  );
  await world.sweep({ now: () => new Date(Date.now() + aheadMs) }, aheadMs);
  await world.sweep({ now: () => new Date(Date.now() - aheadMs) }, -aheadMs);
  const left = await pool.query(
    `SELECT challenge_id AS id FROM otp_challenges WHERE challenge_id = ANY ($1)
     UNION ALL SELECT key FROM idempotency_secrets WHERE org_id = $2
     UNION ALL SELECT secret_id FROM webhook_earlier_secrets WHERE secret_sealed = 'sealed'
     UNION ALL SELECT convert_from(token_hash, 'UTF8') FROM banklink_tokens WHERE org_id = $2
     UNION ALL SELECT CASE session_id WHEN 'old session' THEN session_id ELSE 'new session' END
       FROM consumer_sessions WHERE consumer_id = $3`,
    [asked, world.caller.orgId, consumerId],
  );
  expect(left.rows).toEqual([
    { id: newCode },
    { id: 'new' },
    { id: 'new secret' },
    { id: 'new token' },
    { id: 'new session' },
  ]);
});

test.for(['add_partitions', 'delete_expired_deliveries', 'drop_expired_partition', 'the list of runs'])(
  'one-time codes are deleted also while %s fails, and then the sweep fails',
  async (failing, { api, world }) => {
    const { pool } = api.owner;
    const { challenge_id: challengeId } = jsonOf(
      await api.call(null, 'POST', '/consumer/auth/request-otp', { email: 'kept@person.example' }),
    );
    await pool.query(
      `UPDATE otp_challenges SET created_at = created_at - interval '61 minutes' WHERE challenge_id = $1`,
      [challengeId],
    );
    const findRunning = () => Promise.reject(new Error('no list'));
    if (failing === 'the list of runs') await expect(world.sweep({ runs: { findRunning } })).rejects.toThrow('no list');
    else await whileRenamed(pool, failing, () => expect(world.sweep()).rejects.toMatchObject(MISSING));
    const left = await pool.query('SELECT FROM otp_challenges WHERE challenge_id = $1', [challengeId]);
    expect(left.rowCount).toBe(0);
  },
);

test('one sweep deletes a bounded number of rows of a table, and none that another transaction holds', async ({
  api,
}) => {
  const { pool } = api.owner;
  await pool.query(
    `INSERT INTO otp_challenges (challenge_id, channel, contact_hash, contact_sealed, code_hash, attempts, created_at,
       expires_at)
     SELECT 'expired-' || n, 'email', '', 'sealed', '', 0, now() - interval '2 hours', now() - interval '1 hour'
     FROM generate_series(1, 2002) n`,
  );
  const step = () => deleteOldChallenges(api.connection.db);
  const held = `SELECT 1 FROM otp_challenges WHERE challenge_id = 'expired-1' FOR UPDATE`;
  expect(await whileLocked(pool, held, async () => [await step(), await step()])).toEqual([2_000, 1]);
  await expect.poll(step).toBe(1);
});

/** Runs this while the database has no such function. */
async function whileRenamed(owner: pg.Pool, name: string, run: () => Promise<unknown>): Promise<void> {
  await owner.query(`ALTER FUNCTION ${name} RENAME TO renamed`);
  try {
    await run();
  } finally {
    await owner.query(`ALTER FUNCTION renamed RENAME TO ${name}`);
  }
}

describe('an expired month', MINUTE_ENDS, () => {
  test.beforeEach(({ api }) => startMonthsAgo(api.owner.pool, 6));

  test('is dropped with its events and attempts once none of their deliveries is left', async ({ api, world }) => {
    const [old, young] = [await world.add(MONTHS_AGO), await world.add(DAYS - HOUR)];
    await world.drop();
    expect(await world.events()).toEqual([old, young]);
    await world.expire();
    const month = new Date(Date.now() - MONTHS_AGO * DAY_MS).toISOString().slice(0, 7).replace('-', '_');
    const dropped = await world.drop();
    expect(dropped).toEqual(expect.arrayContaining([`events_${month}`, `webhook_attempts_${month}`]));
    expect([await world.events(), await world.attempts(), await world.deliveries()]).toEqual([
      [young],
      [young],
      [young],
    ]);
    expect((await api.call(world.caller, 'GET', `/v1/events/${old}`)).statusCode).toBe(404);
  });

  test('is counted as kept for too long until it is dropped', async ({ world }) => {
    expect(await world.overdueDays()).toBeGreaterThan(30);
    await world.drop();
    expect(await world.overdueDays()).toBe(0);
  });

  test('stays while a delivery of it is pending, and so do its attempts; later months are dropped', async ({
    world,
  }) => {
    const pending = await world.add(MONTHS_AGO + 31, 'pending');
    await world.add(MONTHS_AGO);
    await world.expire();
    await world.drop();
    expect([await world.events(), await world.attempts()]).toEqual([[pending], [pending]]);
  });

  test('is dropped by the sweep, one table at a time', async ({ api, world }) => {
    await world.add(MONTHS_AGO);
    const before = await listPartitions(api.connection.db);
    await world.sweep();
    const after = await listPartitions(api.connection.db);
    expect(before.length - after.length).toBe(1);
    for (let count = 0; count < before.length; count += 1) await world.sweep();
    expect([await world.events(), await world.attempts()]).toEqual([[], []]);
  });

  test('of quotes is dropped after a time of its own', async ({ world }) => {
    const [old, young] = [await world.add(40), await world.add(0)];
    await world.drop({ events: DAYS, quotes: 60 });
    expect(await world.quotes()).toEqual([old, young].sort());
    await world.drop({ events: DAYS, quotes: 1 });
    expect([await world.quotes(), await world.events()]).toEqual([[young], [old, young].sort()]);
  });

  test('stays for an hour more, because the clocks of processes make its ids', async ({ api, world }) => {
    const endAgo = async (minutes: number): Promise<void> => {
      const until = `id_at(now() - interval '24 hours' - interval '${minutes} minutes')`;
      await api.owner.pool.query(`DO $$ DECLARE leaf text; BEGIN
        FOR leaf IN SELECT name FROM partitions() WHERE table_name = 'quotes' LOOP EXECUTE format('DROP TABLE %I', leaf); END LOOP;
        EXECUTE format('CREATE TABLE quotes_first PARTITION OF quotes FOR VALUES FROM (MINVALUE) TO (%L)', ${until});
      END $$`);
    };
    const droppedQuotes = async () => (await world.drop()).filter((name) => name.startsWith('quotes'));
    await endAgo(50);
    expect([await droppedQuotes(), await world.overdueDays()]).toEqual([[], 0]);
    await endAgo(70);
    expect(await droppedQuotes()).toEqual(['quotes_first']);
  });

  test('stays while somebody reads it for long; nobody waits behind the drop, and a later one succeeds', async ({
    api,
    world,
  }) => {
    await world.add(MONTHS_AGO);
    await world.expire();
    const reader = await api.owner.pool.connect();
    await reader.query('BEGIN; SELECT count(*) FROM events');
    try {
      let isOver = false;
      const dropping = world.drop().finally(() => {
        isOver = true;
      });
      do {
        const startedMs = performance.now();
        await world.add(0);
        expect(performance.now() - startedMs).toBeLessThan(stretched(2_000));
      } while (!isOver);
      expect(await dropping).toEqual([]);
      await reader.query('COMMIT');
    } finally {
      reader.release(true);
    }
    expect(await world.drop()).not.toEqual([]);
  });
});

describe('the months to come', MINUTE_ENDS, () => {
  test('are made ahead, and again only when one is missing', async ({ api }) => {
    const { db } = api.connection;
    expect(await addPartitions(db)).toBe(0);
    await dropComingMonths(api.owner.pool);
    const added = await Promise.all([addPartitions(db), addPartitions(db), addPartitions(db)]);
    expect(added.reduce((sum, count) => sum + count, 0)).toBe(3 * PARTITIONS_AHEAD);
    const last = (await listPartitions(db)).filter(({ table }) => table === 'events').at(-1);
    const ahead = new Date();
    ahead.setUTCMonth(ahead.getUTCMonth() + PARTITIONS_AHEAD + 1, 1);
    expect(last?.to).toBe(ahead.toISOString().slice(0, 10));
  });

  test('are made by each sweep, also while Temporal does not list what runs', async ({ api, world }) => {
    await dropComingMonths(api.owner.pool);
    const runs = { findRunning: () => Promise.reject(new Error('no answer')) };
    await expect(world.sweep({ runs })).rejects.toThrow('no answer');
    expect(await addPartitions(api.connection.db)).toBe(0);
  });

  test.for([0, 13, null])('are refused for %s months', async (months, { api }) => {
    const call = api.connection.pool.query('SELECT add_partitions($1)', [months]);
    await expect(call).rejects.toMatchObject({ code: '22023' });
  });
});
