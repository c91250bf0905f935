/**
 * Outbound events (contract §11). An event is written in the transaction of its change, as the exact bytes that every
 * subscriber is sent, together with its delivery to each subscription. So no event is lost.
 */
import { desc, eq, sql } from 'drizzle-orm';
import { notBefore } from '../../domain/clock.ts';
import { EVENT_SCHEMA_VERSION, type EventEnvelope, type EventType, type ObjectType } from '../../domain/event.ts';
import { ALL_EVENTS, SUBSCRIPTIONS_MAX } from '../../domain/webhook.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { events } from '../schema/event.ts';
import { webhookDeliveries, webhooks } from '../schema/webhook.ts';
import { enqueueDeliveriesSql } from './webhook-delivery.ts';

/** When a change happened, and which request or operator's command made it: its events show both. */
export type Stamp = { readonly at: Date; readonly requestId: string };

export type NewEvent = Stamp & {
  readonly orgId: string;
  readonly objectType: ObjectType;
  readonly objectId: string;
  readonly type: EventType;
  /** The object as the API shows it after this change; no account numbers. */
  readonly data: Readonly<Record<string, unknown>>;
};

/**
 * Writes an event with the object's next sequence number, dated not before its predecessor. The caller has locked the
 * object's row, so the numbers have no gaps; a unique index refuses a second writer.
 *
 * @returns the id of the event
 */
export async function recordEvent(tx: Tx, event: NewEvent): Promise<string> {
  const [latest] = await tx
    .select({ sequence: events.sequence, at: events.createdAt })
    .from(events)
    .where(eq(events.objectId, event.objectId))
    .orderBy(desc(events.sequence))
    .limit(1);
  if (!latest) return await recordFirstEvent(tx, event);
  return await writeEvent(tx, { ...event, at: notBefore(event.at, latest.at) }, latest.sequence + 1);
}

/** Writes the first event of an object, without reading its latest sequence number. */
export const recordFirstEvent = (tx: Tx, event: NewEvent): Promise<string> => writeEvent(tx, event, 1);

async function writeEvent(tx: Tx, event: NewEvent, sequence: number): Promise<string> {
  const eventId = newId();
  const envelope: EventEnvelope = {
    id: eventId,
    type: event.type,
    timestamp: event.at.toISOString(),
    schema_version: EVENT_SCHEMA_VERSION,
    sequence,
    data: event.data,
  };
  await insertEventAndDeliveries(tx, { ...event, eventId, sequence, body: Buffer.from(JSON.stringify(envelope)) });
  return eventId;
}

/**
 * One statement: the event, a delivery for each subscription to its type, and the outbox row that starts each pending
 * delivery. The delivery of a disabled subscription is `skipped` and can be redelivered. A ping has one delivery: to
 * the subscription that it is about.
 */
async function insertEventAndDeliveries(
  tx: Tx,
  event: NewEvent & { readonly eventId: string; readonly sequence: number; readonly body: Buffer },
): Promise<void> {
  const { eventId, orgId, type, objectType, objectId, sequence, body, at, requestId } = event;
  const isPing = type === 'webhook.ping';
  const wanted = isPing ? sql`webhook_id = ${objectId}` : sql`event_types && ARRAY[${type}, ${ALL_EVENTS}]`;
  const deliveryIds = Array.from({ length: isPing ? 1 : SUBSCRIPTIONS_MAX }, newId);
  await tx.execute(sql`
    WITH event AS (
      INSERT INTO ${events} (event_id, org_id, type, object_type, object_id, sequence, body, created_at)
      VALUES (${eventId}, ${orgId}, ${type}, ${objectType}, ${objectId}, ${sequence}, ${body},
        ${at.toISOString()}::timestamptz)
    ), wanted AS (
      SELECT webhook_id, ${isPing}::boolean OR status = 'enabled' AS pending,
        row_number() OVER (ORDER BY webhook_id) AS position
      FROM ${webhooks} WHERE org_id = ${orgId} AND deleted_at IS NULL AND ${wanted}
    ), delivery AS (
      INSERT INTO ${webhookDeliveries} (delivery_id, org_id, webhook_id, event_id, event_type,
        status, generation, requested, prior_attempts, next_attempt_at, request_id, created_at)
      SELECT (${sql.param(deliveryIds)}::text[])[position], ${orgId}, webhook_id, ${eventId}, ${type},
        CASE WHEN pending THEN 'pending' ELSE 'skipped' END, 1, ${isPing}::boolean, 0, CASE WHEN pending THEN now() END, ${requestId}, now()
      FROM wanted
      RETURNING delivery_id, org_id, webhook_id, generation, request_id, status
    )
    ${enqueueDeliveriesSql(sql`delivery WHERE status = 'pending'`, null)}`);
}
