/** Deliveries of events, and their attempts. For an operator, as object.ts says. */
import { desc, eq, sql } from 'drizzle-orm';
import { COUNTED_MAX } from '../../../domain/page.ts';
import type { Queryable } from '../../client.ts';
import { events } from '../../schema/event.ts';
import { webhookAttempts, webhookDeliveries, webhooks } from '../../schema/webhook.ts';
import { shownNextAttemptAt, shownStatus } from '../webhook-delivery.ts';
import { lastOf, ROWS_MAX } from './object.ts';

export const deliveryColumns = {
  deliveryId: webhookDeliveries.deliveryId,
  webhookId: webhookDeliveries.webhookId,
  eventType: webhookDeliveries.eventType,
  status: shownStatus,
  nextAttemptAt: shownNextAttemptAt,
  createdAt: webhookDeliveries.createdAt,
} as const;

export async function findDeliveryObject(db: Queryable, deliveryId: string) {
  const [row] = await db
    .select({
      ...deliveryColumns,
      orgId: webhookDeliveries.orgId,
      eventId: webhookDeliveries.eventId,
      requestId: webhookDeliveries.requestId,
      objectType: events.objectType,
      objectId: events.objectId,
      eventAt: events.createdAt,
      url: webhooks.url,
      failingSince: webhooks.failingSince,
    })
    .from(webhookDeliveries)
    .innerJoin(events, eq(events.eventId, webhookDeliveries.eventId))
    .innerJoin(webhooks, eq(webhooks.webhookId, webhookDeliveries.webhookId))
    .where(eq(webhookDeliveries.deliveryId, deliveryId));
  return row;
}

/** The latest deliveries of the object's events, in the order of the events. */
export const listDeliveriesAbout = (db: Queryable, objectId: string) =>
  lastOf(
    db
      .select(deliveryColumns)
      .from(webhookDeliveries)
      .innerJoin(events, eq(events.eventId, webhookDeliveries.eventId))
      .where(eq(events.objectId, objectId))
      .orderBy(desc(events.sequence), desc(webhookDeliveries.deliveryId)),
  );

/** The latest deliveries of a subscription; those of one commit in the order of their events. */
export const listDeliveriesTo = (db: Queryable, webhookId: string) =>
  db
    .select(deliveryColumns)
    .from(webhookDeliveries)
    .where(eq(webhookDeliveries.webhookId, webhookId))
    .orderBy(desc(webhookDeliveries.createdAt), desc(webhookDeliveries.eventId), desc(webhookDeliveries.deliveryId))
    .limit(ROWS_MAX);

/**
 * How many of the latest deliveries of a subscription have each status, among as many as a list counts.
 *
 * @returns `isPartial`: there may be more than these
 */
export async function countDeliveriesTo(db: Queryable, webhookId: string) {
  const { rows } = await db.execute<{ status: string; count: number }>(sql`
    SELECT ${shownStatus} AS status, count(*)::int AS count FROM (
      SELECT webhook_id, status, endings FROM webhook_deliveries WHERE webhook_id = ${webhookId}
      ORDER BY created_at DESC, delivery_id DESC LIMIT ${COUNTED_MAX}
    ) AS webhook_deliveries GROUP BY 1 ORDER BY 1`);
  return { counts: rows, isPartial: rows.reduce((sum, { count }) => sum + count, 0) === COUNTED_MAX };
}

/** The latest attempts, in their order. */
export const listAttemptsOf = (db: Queryable, deliveryId: string) =>
  lastOf(
    db
      .select()
      .from(webhookAttempts)
      .where(eq(webhookAttempts.deliveryId, deliveryId))
      .orderBy(desc(webhookAttempts.number)),
  );
