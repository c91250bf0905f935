/**
 * POST /v1/webhooks/{webhook_id}/replay: what a subscription missed is sent again; and how often one delivery is
 * (contract §11).
 */
import { describe, expect } from 'vitest';
import { redeliverAsOperator } from '../../db/commands/webhook-delivery.ts';
import { newId } from '../../db/id.ts';
import { REDELIVERIES_MAX } from '../../domain/webhook.ts';
import { raceBehind } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { expectInvalid, expectRefused } from '../support/refusal.ts';
import { ALWAYS, createMissed } from '../support/replay.ts';

const TYPES = ['settlement.accepted', 'settlement.funded', 'settlement.settled'];

/** `missed`: a disabled subscription with four skipped deliveries, oldest first. `deliveryId`: that of the first one. */
const test = withApi()
  .extend('missed', ({ api }) => createMissed(api, 4, TYPES))
  .extend('deliveryId', async ({ missed }): Promise<string> => (await missed.deliveries())[0]?.['delivery_id']);

const SKIPPED = ['skipped', 'skipped', 'skipped', 'skipped'];
const PENDING = ['pending', 'pending', 'pending', 'pending'];

const ONE = 'WHERE webhook_id = $1 AND delivery_id = $2';
/** It was redelivered as often as it may be in a day. */
const USED_UP = `UPDATE webhook_deliveries SET redelivered_at = array_fill(now(), ARRAY[${REDELIVERIES_MAX}]) ${ONE}`;
const CLAIMED = `UPDATE webhook_deliveries SET claimed_by = 1000000, claimed_at = now() ${ONE}`;
/** As if it had been exhausted again, and all before so much earlier. */
const AGAIN = `UPDATE webhook_deliveries SET status = 'exhausted', next_attempt_at = NULL, lane_key = NULL,
  redelivered_at = ARRAY(SELECT at - $3::interval FROM unnest(redelivered_at) at) ${ONE}`;

describe('a replay', () => {
  test('202 with its id, one outbox row and no change of a delivery; reading it shows how far it is', async ({
    missed,
  }) => {
    await missed.rowsOf('UPDATE webhook_deliveries SET attempt_count = 3 WHERE webhook_id = $1');
    const answer = await missed.replay();
    const { replay_id: id } = jsonOf(answer);
    expect([answer.statusCode, jsonOf(answer), answer.headers['location']]).toEqual([
      202,
      { replay_id: expect.any(String) },
      `/v1/webhooks/${missed.webhookId}/replays/${id}`,
    ]);
    expect(await missed.statuses()).toEqual(SKIPPED);
    const queued = `SELECT count(*)::int AS count FROM outbox WHERE kind = 'webhook_subscription' AND object_id = $1`;
    expect(await missed.rowsOf(queued)).toEqual([{ count: 1 }]);
    const begun: Json = {
      replay_id: id,
      webhook_id: missed.webhookId,
      status: 'running',
      since: '2020-01-01T00:00:00.000Z',
      until: null,
      statuses: ['pending', 'skipped', 'exhausted'],
      event_types: null,
      sent: 0,
      skipped: 0,
      reached_at: '2020-01-01T00:00:00.000Z',
      created_at: expect.any(String),
      finished_at: null,
    };
    expect(await missed.read(id)).toEqual(begun);
    expect(await missed.round()).toMatchObject({ waitMs: null });
    expect(await missed.statuses()).toEqual(PENDING);
    const next = { generation: 2, prior_attempts: 3, request_id: answer.headers['x-request-id'] };
    expect(await missed.deliveries()).toMatchObject([next, next, next, next]);
    const last = (await missed.deliveries()).at(-1)?.['created_at'].toISOString();
    const ended = { status: 'completed', sent: 4, reached_at: last, finished_at: expect.any(String) };
    expect(await missed.read(id)).toEqual({ ...begun, ...ended });
  });

  test('sends these event types and this time only', async ({ api }) => {
    const missed = await createMissed(api, 12, TYPES);
    const rows = await missed.deliveries();
    const [since, until] = [rows[4]?.['created_at'], rows[8]?.['created_at']];
    const isWanted = ({ event_type: type, created_at: at }: Json) =>
      type === 'settlement.settled' && at >= since && at < until;
    const id = await missed.start({ since, until, event_types: ['settlement.settled'] });
    await missed.round();
    const sent = (await missed.deliveries()).filter(({ status }) => status === 'pending');
    expect(sent.map(({ delivery_id }) => delivery_id)).toEqual(
      rows.filter(isWanted).map(({ delivery_id }) => delivery_id),
    );
    expect(await missed.read(id)).toMatchObject({
      status: 'completed',
      sent: rows.filter(isWanted).length,
      until: until.toISOString(),
    });
    expect(sent.length).toBeGreaterThan(0);
  });

  test.for<['POST' | 'DELETE', string, number]>([
    ['POST', '/replay', 202],
    ['DELETE', '', 204],
  ])(
    "and the end of a subscription are carried out at once, also when the API's clock is ahead: %s %s",
    async ([method, below, status], { missed, clock }) => {
      await missed.rowsOf('UPDATE webhooks SET retries_at = NULL WHERE webhook_id = $1');
      clock.advance(3_600_000);
      const answer = await missed.call(method, below, method === 'POST' ? ALWAYS : undefined);
      expect(answer.statusCode).toBe(status);
      const due = await missed.rowsOf('SELECT retries_at <= now() AS is_due FROM webhooks WHERE webhook_id = $1');
      expect(due).toEqual([{ is_due: true }]);
    },
  );

  test('422 for a time that ends before it begins, so that no replay of nothing holds up another one', async ({
    api,
    missed,
  }) => {
    const backwards = { since: '2026-11-21T08:00:00Z', until: '2026-11-21T09:59:59+02:00' };
    await expectInvalid(api, () => missed.replay(backwards), [['body.until', 'value_error']]);
    expect((await missed.replay({ ...backwards, until: backwards.since })).statusCode).toBe(202);
  });

  test('leaves what succeeded alone, unless it is asked for', async ({ missed }) => {
    await missed.rowsOf(`UPDATE webhook_deliveries SET status = 'succeeded' WHERE webhook_id = $1`);
    const untouched = await missed.start();
    await missed.round();
    expect(await missed.read(untouched)).toMatchObject({ status: 'completed', sent: 0 });
    const wanted = await missed.start({ ...ALWAYS, statuses: ['succeeded'] });
    await missed.round();
    expect(await missed.read(wanted)).toMatchObject({ sent: 4 });
  });

  test('makes the next attempt of a pending delivery now, in its generation, and none is made twice at once', async ({
    missed,
  }) => {
    await missed.rowsOf(`UPDATE webhook_deliveries SET status = 'pending', attempt_count = 2,
      next_attempt_at = now() + interval '1 h' WHERE webhook_id = $1`);
    const [, claimed] = await missed.deliveries();
    await missed.rowsOf(CLAIMED, claimed?.['delivery_id']);
    const id = await missed.start({ ...ALWAYS, statuses: ['pending'] });
    await missed.round();
    expect(await missed.read(id)).toMatchObject({ status: 'completed', sent: 4, skipped: 0 });
    for (const row of await missed.deliveries()) {
      const isClaimed = row['delivery_id'] === claimed?.['delivery_id'];
      expect(row).toMatchObject({ generation: 1, prior_attempts: 0, redelivery_requested: isClaimed });
      expect([row['next_attempt_at'] <= new Date(), row['lane_key'] === null]).toEqual([true, isClaimed]);
    }
  });

  test('409 while another replay of the subscription runs, which the answer names, and 202 after it', async ({
    api,
    missed,
  }) => {
    const running = await missed.start();
    const conflict = { code: 'state_conflict', current_state: 'replay_running', replay_id: running };
    await expectRefused(api, () => missed.replay(), 409, conflict);
    await missed.round();
    expect((await missed.replay()).statusCode).toBe(202);
  });

  test('409 for all but one of those that ask at the same time', async ({ api, missed }) => {
    const hold = (holder: { query: typeof api.connection.pool.query }) =>
      holder.query('SELECT 1 FROM webhooks WHERE webhook_id = $1 FOR UPDATE', [missed.webhookId]);
    const answers = await raceBehind(api.connection.pool, { hold }, [missed.replay, missed.replay, missed.replay]);
    expect(answers.map(({ statusCode }) => statusCode).sort((a, b) => a - b)).toEqual([202, 409, 409]);
    expect(await missed.rowsOf('SELECT 1 FROM webhook_replays WHERE webhook_id = $1')).toHaveLength(1);
  });

  test('202 once for one idempotency key, and the same answer again', async ({ missed }) => {
    const key = { 'idempotency-key': newId() };
    const [first, again] = [await missed.replay(ALWAYS, key), await missed.replay(ALWAYS, key)];
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([202, first.body, 'true']);
    expect(again.headers['location']).toBe(first.headers['location']);
  });

  test('ends as canceled when its subscription is deleted, and sends nothing more', async ({ missed }) => {
    const id = await missed.start();
    expect((await missed.call('DELETE')).statusCode).toBe(204);
    expect(await missed.read(id)).toMatchObject({ status: 'canceled', finished_at: expect.any(String) });
    expect(await missed.round()).toMatchObject({ waitMs: null, found: { status: 'deleted' } });
    expect(await missed.statuses()).toEqual(SKIPPED);
  });

  test('ends as canceled when its subscription is disabled, and goes on if that was disabled before', async ({
    missed,
  }) => {
    const disable = () => missed.call('PATCH', '', { status: 'disabled' });
    await missed.call('PATCH', '', { status: 'enabled' });
    const canceled = await missed.start();
    expect((await disable()).statusCode).toBe(200);
    expect(await missed.read(canceled)).toMatchObject({ status: 'canceled', finished_at: expect.any(String) });
    await missed.round();
    expect(await missed.statuses()).toEqual(SKIPPED);
    const id = await missed.start();
    await disable();
    await missed.round();
    expect(await missed.read(id)).toMatchObject({ status: 'completed', sent: 4 });
  });

  test('leaves out and counts what was redelivered five times within a day, also while its attempt is under way', async ({
    missed,
    deliveryId,
  }) => {
    const underWay = (await missed.deliveries())[1]?.['delivery_id'];
    await missed.rowsOf(`UPDATE webhook_deliveries SET status = 'pending', next_attempt_at = now() ${ONE}`, underWay);
    await missed.rowsOf(CLAIMED, underWay);
    for (const usedUp of [deliveryId, underWay]) await missed.rowsOf(USED_UP, usedUp);
    const id = await missed.start();
    await missed.round();
    expect(await missed.read(id)).toMatchObject({ status: 'completed', sent: 2, skipped: 2 });
    expect(await missed.statuses()).toEqual(['skipped', 'pending', 'pending', 'pending']);
  });
});

describe('a redelivery', () => {
  test('429 for the sixth within 24 hours, with Retry-After, and 202 when the first is a day old', async ({
    api,
    missed,
    deliveryId,
  }) => {
    for (let n = 1; n <= REDELIVERIES_MAX; n += 1) {
      expect((await missed.redeliver(deliveryId)).statusCode).toBe(202);
      await missed.rowsOf(AGAIN, deliveryId, '1 h');
    }
    const refused = await missed.redeliver(deliveryId);
    expect([refused.statusCode, jsonOf(refused)]).toMatchObject([
      429,
      { code: 'quota_exceeded', quota: 'redeliveries_per_day' },
    ]);
    const wanted = 19 * 3_600;
    const seconds = Number(refused.headers['retry-after']);
    expect([seconds <= wanted, seconds > wanted - 600]).toEqual([true, true]);
    await expectRefused(api, () => missed.redeliver(deliveryId), 429);
    await missed.rowsOf(AGAIN, deliveryId, '19 h');
    expect((await missed.redeliver(deliveryId)).statusCode).toBe(202);
    const [row] = await missed.deliveries();
    expect([row?.['generation'], row?.['redelivered_at'].length]).toEqual([REDELIVERIES_MAX + 2, REDELIVERIES_MAX]);
  });

  test('202 for a pending delivery however often, since it begins no generation; 429 while its attempt is under way', async ({
    missed,
    deliveryId,
  }) => {
    for (let n = 0; n <= REDELIVERIES_MAX + 1; n += 1)
      expect((await missed.redeliver(deliveryId)).statusCode).toBe(202);
    expect((await missed.deliveries())[0]).toMatchObject({ generation: 2 });
    await missed.rowsOf(USED_UP, deliveryId);
    await missed.rowsOf(CLAIMED, deliveryId);
    expect((await missed.redeliver(deliveryId)).statusCode).toBe(429);
  });

  test('to a disabled subscription stays pending when that is enabled', async ({ missed, deliveryId }) => {
    await missed.redeliver(deliveryId);
    await missed.call('PATCH', '', { status: 'enabled' });
    const pending = jsonOf(await missed.call('GET', '/deliveries?status=pending'));
    expect(pending.map(({ delivery_id: id }: Json) => id)).toEqual([deliveryId]);
  });

  test('is not refused for an operator', async ({ api, missed, deliveryId }) => {
    await missed.rowsOf(USED_UP, deliveryId);
    expect((await missed.redeliver(deliveryId)).statusCode).toBe(429);
    await redeliverAsOperator(api.deps, deliveryId, { operator: 'ana', note: 'the partner asked', requestId: 'test' });
    expect((await missed.statuses())[0]).toBe('pending');
  });

  test('202 for a delivery whose last result is recorded at the same moment', async ({ api, missed, deliveryId }) => {
    const redeliver = () => missed.redeliver(deliveryId);
    expect((await redeliver()).statusCode).toBe(202);
    const succeeds = `UPDATE webhook_deliveries SET status = 'succeeded', next_attempt_at = NULL, lane_key = NULL
      WHERE delivery_id = $1`;
    const hold = (holder: { query: typeof api.connection.pool.query }) => holder.query(succeeds, [deliveryId]);
    const [answer] = await raceBehind(api.connection.pool, { hold }, [redeliver]);
    expect([answer?.statusCode, answer?.body]).toEqual([202, answer?.body]);
    expect((await missed.statuses())[0]).toBe('pending');
  });

  test('202 once for one idempotency key; 409 for the same key with another delivery', async ({
    missed,
    deliveryId,
  }) => {
    const key = { 'idempotency-key': newId() };
    const answers = [await missed.redeliver(deliveryId, key), await missed.redeliver(deliveryId, key)];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202]);
    expect(answers[1]?.body).toBe(answers[0]?.body);
    const other = await missed.redeliver((await missed.deliveries())[1]?.['delivery_id'], key);
    expect([other.statusCode, jsonOf(other).code]).toEqual([409, 'idempotency_key_reused']);
    expect(await missed.statuses()).toEqual(['pending', 'skipped', 'skipped', 'skipped']);
  });
});
