/** The fan-out of events: every subscription gets its delivery in the transaction of the change, once. */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { recordEvent } from '../../db/queries/event.ts';
import { events, webhookDeliveries } from '../../db/schema/index.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { withApi } from '../support/fixture.ts';
import { subscribe } from '../support/webhook.ts';

/** `subscriber`: an organization for each test, so that no test sees the subscriptions of another. */
const test = withApi().extend('subscriber', ({ api }) => createSubscriber(api));

async function createSubscriber(api: TestApi) {
  const { db, pool } = api.connection;
  const caller = await api.createCaller();
  const query = async (text: string, ...values: unknown[]) => (await pool.query(text, values)).rows;
  const event = {
    orgId: caller.orgId,
    objectType: 'api_key',
    objectId: caller.keyId,
    type: 'api_key.revoked',
    data: { name: 'é' },
    at: new Date('2026-11-21T08:00:00.000Z'),
    requestId: 'request-1',
  } as const;
  return {
    caller,
    query,
    event,
    /** @returns the id of the subscription */
    subscribe: async (eventTypes: readonly string[] = ['*'], as: Caller = caller): Promise<string> =>
      (await subscribe(api, as, 'https://hooks.partner.example/', eventTypes)).webhook_id,
    record: () => db.transaction((tx) => recordEvent(tx, event)),
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
    subscriber: { caller, event, query, subscribe },
  }) => {
    await subscribe();
    const failing = api.connection.db.transaction(async (tx) => {
      await recordEvent(tx, event);
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    expect(await query('SELECT 1 FROM events WHERE org_id = $1', caller.orgId)).toEqual([]);
    expect(await query('SELECT 1 FROM webhook_deliveries WHERE org_id = $1', caller.orgId)).toEqual([]);
    expect(await query(`SELECT 1 FROM outbox WHERE context->>'orgId' = $1`, caller.orgId)).toEqual([]);
  });

  test('has no delivery to a subscription of another organization, of another type, or to a deleted one', async ({
    api,
    subscriber: { caller, subscribe, record, deliveriesOf },
  }) => {
    await subscribe(['*'], await api.createCaller());
    await subscribe(['settlement.settled']);
    await api.call(caller, 'DELETE', `/v1/webhooks/${await subscribe()}`);
    expect(await deliveriesOf(await record())).toEqual([]);
  });

  test('has a delivery to each subscription of its type: pending with a lane, or skipped when disabled, and none wakes a workflow', async ({
    api,
    subscriber: { caller, query, subscribe, record, deliveriesOf },
  }) => {
    const exact = await subscribe(['settlement.settled', 'api_key.revoked']);
    const all = await subscribe();
    const disabled = await subscribe();
    await api.call(caller, 'PATCH', `/v1/webhooks/${disabled}`, { status: 'disabled' });
    await query('DELETE FROM outbox');
    const eventId = await record();
    expect(await deliveriesOf(eventId)).toEqual([
      { webhook_id: exact, status: 'pending', generation: 1, idle: false },
      { webhook_id: all, status: 'pending', generation: 1, idle: false },
      { webhook_id: disabled, status: 'skipped', generation: 1, idle: true },
    ]);
    expect(await query('SELECT 1 FROM outbox')).toEqual([]);
  });

  test('is numbered from 1 for each object, and its bytes are stored as they will be sent', async ({
    api,
    subscriber: { record },
  }) => {
    await record();
    const eventId = await record();
    const [stored] = await api.connection.db.select().from(events).where(eq(events.eventId, eventId));
    expect(stored?.body.toString()).toBe(
      `{"id":"${eventId}","type":"api_key.revoked","timestamp":"2026-11-21T08:00:00.000Z",` +
        '"schema_version":"1","sequence":2,"data":{"name":"é"}}',
    );
  });
});

test('the database itself refuses a second delivery of one event to one subscription', async ({
  api: { connection },
  subscriber: { subscribe, record },
}) => {
  await subscribe();
  const ofEvent = eq(webhookDeliveries.eventId, await record());
  const [row] = await connection.db.select().from(webhookDeliveries).where(ofEvent);
  if (!row) throw new Error('no delivery');
  await expect(connection.db.insert(webhookDeliveries).values({ ...row, deliveryId: newId() })).rejects.toMatchObject({
    cause: { code: '23505' },
  });
});
