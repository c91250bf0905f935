/**
 * Outbound events. An event is written in the transaction of the change it tells of, as the exact bytes that every
 * subscriber is sent (contract §11).
 */
import { eq, max } from 'drizzle-orm';
import { EVENT_SCHEMA_VERSION, type EventEnvelope, type EventType, type ObjectType } from '../../domain/event.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { events } from '../schema/event.ts';

export type NewEvent = {
  readonly orgId: string;
  readonly objectType: ObjectType;
  readonly objectId: string;
  readonly type: EventType;
  /** The object as the API shows it at this change; no account numbers. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly at: Date;
  readonly requestId: string;
};

/**
 * Writes an event with the object's next sequence number. The caller holds the object's row lock, so that numbers
 * have no gaps; a unique index refuses a second writer.
 */
export async function recordEvent(tx: Tx, event: NewEvent): Promise<string> {
  const [latest] = await tx
    .select({ sequence: max(events.sequence) })
    .from(events)
    .where(eq(events.objectId, event.objectId));
  const eventId = newId();
  const sequence = (latest?.sequence ?? 0) + 1;
  const envelope: EventEnvelope = {
    id: eventId,
    type: event.type,
    timestamp: event.at.toISOString(),
    schema_version: EVENT_SCHEMA_VERSION,
    sequence,
    data: event.data,
  };
  await tx.insert(events).values({
    eventId,
    orgId: event.orgId,
    type: event.type,
    objectType: event.objectType,
    objectId: event.objectId,
    sequence,
    body: Buffer.from(JSON.stringify(envelope)),
    createdAt: event.at,
  });
  return eventId;
}
