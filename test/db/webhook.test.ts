/** The fan-out of events: every subscription gets its delivery in the transaction of the change, once. */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { createWebhook } from '../../db/commands/webhook.ts';
import { newId } from '../../db/id.ts';
import { recordEvent } from '../../db/queries/event.ts';
import { getWebhook } from '../../db/queries/webhook.ts';
import { events, webhookDeliveries } from '../../db/schema/index.ts';
import type { EventType } from '../../domain/event.ts';
import type { EventFilter } from '../../domain/webhook.ts';
import type { TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';

/** `subscriber`: an organization for each test, so that no test sees the subscriptions of another. */
const test = withApi().extend('subscriber', ({ api }) => createSubscriber(api));

async function createSubscriber(api: TestApi) {
  const { db, pool } = api.connection;
  const caller = await api.createCaller();
  const query = async (text: string, ...values: unknown[]) => (await pool.query(text, values)).rows;
  const subscribe = async (orgId: string, eventTypes: EventFilter[]) => {
    const draft = { url: 'https://hooks.partner.example/', eventTypes, description: null };
    const creation = { keyed: undefined, status: 201, show: () => ({}) };
    const { resourceId } = await createWebhook(api.deps, orgId, draft, creation);
    return await getWebhook(db, orgId, resourceId);
  };
  const eventOf = (type: EventType) => ({
    orgId: caller.orgId,
    objectType: 'api_key' as const,
    objectId: caller.keyId,
    type,
    data: { name: 'é' },
    at: new Date('2026-11-21T08:00:00.000Z'),
    requestId: 'request-1',
  });
  return {
    caller,
    query,
    subscribe,
    eventOf,
    record: (type: EventType) => db.transaction((tx) => recordEvent(tx, eventOf(type))),
    deliveriesOf: (eventId: string) =>
      query(
        `SELECT webhook_id, status, generation, lane_key IS NULL AS idle
         FROM webhook_deliveries WHERE event_id = $1 ORDER BY webhook_id`,
        eventId,
      ),
  };
}

describe('an event', () => {
  test('leaves nothing when its change is rolled back: no event, no delivery, no outbox row', async ({
    api,
    subscriber,
  }) => {
    const { caller, query, subscribe, eventOf } = subscriber;
    await subscribe(caller.orgId, ['*']);
    const failing = api.connection.db.transaction(async (tx) => {
      await recordEvent(tx, eventOf('api_key.revoked'));
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    expect(await query('SELECT 1 FROM events WHERE org_id = $1', caller.orgId)).toEqual([]);
    expect(await query('SELECT 1 FROM webhook_deliveries WHERE org_id = $1', caller.orgId)).toEqual([]);
    expect(await query(`SELECT 1 FROM outbox WHERE context->>'orgId' = $1`, caller.orgId)).toEqual([]);
  });

  test('has no delivery to a subscription of another organization, of another type, or to a deleted one', async ({
    api,
    subscriber,
  }) => {
    const { caller, subscribe, record, deliveriesOf } = subscriber;
    const other = await api.createCaller();
    await subscribe(other.orgId, ['*']);
    await subscribe(caller.orgId, ['settlement.settled']);
    const { webhookId } = await subscribe(caller.orgId, ['*']);
    await api.call(caller, 'DELETE', `/v1/webhooks/${webhookId}`);
    expect(await deliveriesOf(await record('api_key.revoked'))).toEqual([]);
  });

  test('has a delivery to each subscription of its type: pending with a lane, or skipped when disabled, and none wakes a workflow', async ({
    api,
    subscriber,
  }) => {
    const { caller, query, subscribe, record, deliveriesOf } = subscriber;
    const exact = await subscribe(caller.orgId, ['settlement.settled', 'api_key.revoked']);
    const all = await subscribe(caller.orgId, ['*']);
    const disabled = await subscribe(caller.orgId, ['*']);
    await api.call(caller, 'PATCH', `/v1/webhooks/${disabled.webhookId}`, { status: 'disabled' });
    await query('DELETE FROM outbox');
    const eventId = await record('api_key.revoked');
    expect(await deliveriesOf(eventId)).toEqual([
      { webhook_id: exact.webhookId, status: 'pending', generation: 1, idle: false },
      { webhook_id: all.webhookId, status: 'pending', generation: 1, idle: false },
      { webhook_id: disabled.webhookId, status: 'skipped', generation: 1, idle: true },
    ]);
    expect(await query('SELECT 1 FROM outbox')).toEqual([]);
  });

  test('reaches all twenty subscriptions, each by a delivery with its own id', async ({ subscriber }) => {
    const { caller, query, subscribe, record } = subscriber;
    for (let n = 0; n < 20; n += 1) await subscribe(caller.orgId, ['*']);
    const eventId = await record('api_key.revoked');
    const ids = await query('SELECT DISTINCT delivery_id FROM webhook_deliveries WHERE event_id = $1', eventId);
    expect(ids).toHaveLength(20);
    for (const { delivery_id } of ids)
      expect(delivery_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test('is numbered from 1 for each object, and its bytes are stored as they will be sent', async ({
    api,
    subscriber: { record },
  }) => {
    await record('api_key.revoked');
    const eventId = await record('api_key.revoked');
    const [stored] = await api.connection.db.select().from(events).where(eq(events.eventId, eventId));
    expect(stored?.body.toString()).toBe(
      `{"id":"${eventId}","type":"api_key.revoked","timestamp":"2026-11-21T08:00:00.000Z",` +
        '"schema_version":"1","sequence":2,"data":{"name":"é"}}',
    );
  });
});

describe('the database itself refuses', () => {
  test('a second delivery of one event to one subscription', async ({ api, subscriber }) => {
    const { caller, subscribe, record } = subscriber;
    await subscribe(caller.orgId, ['*']);
    const eventId = await record('api_key.revoked');
    const [row] = await api.connection.db
      .select()
      .from(webhookDeliveries)
      .where(eq(webhookDeliveries.eventId, eventId));
    if (!row) throw new Error('no delivery');
    await expect(
      api.connection.db.insert(webhookDeliveries).values({ ...row, deliveryId: newId() }),
    ).rejects.toMatchObject({ cause: { code: '23505' } });
  });

  test("a change of an attempt's result, and the deletion of history", async ({ api, subscriber }) => {
    const { caller, query, subscribe, record } = subscriber;
    await subscribe(caller.orgId, ['*']);
    const [row] = await api.connection.db
      .select()
      .from(webhookDeliveries)
      .where(eq(webhookDeliveries.eventId, await record('api_key.revoked')));
    await query(
      `INSERT INTO webhook_attempts (delivery_id, number, at, outcome, duration_ms) VALUES ($1, 1, now(), 'failed', 1)`,
      row?.deliveryId,
    );
    await expect(
      api.owner.pool.query(`UPDATE webhook_attempts SET outcome = 'succeeded' WHERE delivery_id = $1`, [
        row?.deliveryId,
      ]),
    ).rejects.toThrow('permanent');
    for (const table of ['webhook_attempts', 'webhook_deliveries'])
      await expect(
        api.owner.pool.query(`DELETE FROM ${table} WHERE delivery_id = $1`, [row?.deliveryId]),
      ).rejects.toThrow('permanent');
  });
});
