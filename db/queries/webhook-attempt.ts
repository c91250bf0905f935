/**
 * Attempts of deliveries. A row is written before its request is sent, and completed once after it. While it is pending
 * it holds one of the few places of its subscription, until its lease ends. The caller has locked the subscription, so
 * places are counted and taken atomically.
 */
import { and, count, eq, isNotNull, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { OutboxSignal } from '../../domain/outbox.ts';
import { type AttemptError, type AttemptOutcome, type DeliveryStatus, IN_FLIGHT_MAX } from '../../domain/webhook.ts';
import type { Tx } from '../client.ts';
import { events } from '../schema/event.ts';
import { webhookAttempts, webhookDeliveries } from '../schema/webhook.ts';
import { type DeliveryRow, enqueueDeliveriesSql } from './webhook-delivery.ts';

/** Longer than any attempt takes. After it, the place of an attempt that died is free. */
const LEASE_SECONDS = 30;

export type AttemptKey = { readonly deliveryId: string; readonly number: number };

/** The result of an attempt, as it is stored. */
export type AttemptRecord = {
  readonly outcome: Exclude<AttemptOutcome, 'pending'>;
  readonly responseStatus: number | null;
  readonly responseBytes: number | null;
  readonly responseSha256: Buffer | null;
  readonly durationMs: number;
  readonly error: AttemptError | null;
};

/** A delivery and the bytes to send. @throws DomainError `not_found` */
export async function getDeliveryToSend(
  tx: Tx,
  orgId: string,
  deliveryId: string,
): Promise<{ readonly delivery: DeliveryRow; readonly body: Buffer }> {
  const [row] = await tx
    .select({ delivery: webhookDeliveries, body: events.body })
    .from(webhookDeliveries)
    .innerJoin(events, eq(events.eventId, webhookDeliveries.eventId))
    .where(and(eq(webhookDeliveries.orgId, orgId), eq(webhookDeliveries.deliveryId, deliveryId)));
  if (!row) throw new DomainError('not_found');
  return row;
}

/** The outcome of an attempt; undefined when it was not begun. */
export async function findAttemptOutcome(
  tx: Tx,
  { deliveryId, number }: AttemptKey,
): Promise<AttemptOutcome | undefined> {
  const [row] = await tx
    .select({ outcome: webhookAttempts.outcome })
    .from(webhookAttempts)
    .where(and(eq(webhookAttempts.deliveryId, deliveryId), eq(webhookAttempts.number, number)));
  return row?.outcome;
}

/**
 * Begins an attempt, or resumes one that a crash left pending. It is not dated before the delivery or an attempt of it.
 *
 * @returns false when the subscription has no free place
 */
export async function beginAttempt(tx: Tx, delivery: DeliveryRow, number: number, at: Date): Promise<boolean> {
  const { deliveryId, webhookId } = delivery;
  const begun = await tx.execute(sql`
    INSERT INTO ${webhookAttempts} (delivery_id, number, webhook_id, at, outcome, lease_expires_at)
    SELECT ${deliveryId}, ${number}::integer, ${webhookId},
      greatest(${at.toISOString()}::timestamptz, ${delivery.createdAt.toISOString()}::timestamptz,
        (SELECT max(at) FROM ${webhookAttempts} WHERE delivery_id = ${deliveryId})),
      'pending', now() + make_interval(secs => ${LEASE_SECONDS})
    WHERE ${IN_FLIGHT_MAX} > (
      SELECT count(*) FROM ${webhookAttempts}
      WHERE webhook_id = ${webhookId} AND outcome = 'pending' AND lease_expires_at > now()
        AND NOT (delivery_id = ${deliveryId} AND number = ${number})
    )
    ON CONFLICT (delivery_id, number) DO UPDATE SET lease_expires_at = excluded.lease_expires_at
    RETURNING number`);
  if (begun.rowCount !== 1) return false;
  if (delivery.waitingSince !== null)
    await tx.update(webhookDeliveries).set({ waitingSince: null }).where(eq(webhookDeliveries.deliveryId, deliveryId));
  return true;
}

/**
 * Lets a delivery wait for a free place. One that waits already keeps its turn.
 *
 * @returns how many deliveries of the subscription wait now
 */
export async function waitForPlace(tx: Tx, { deliveryId, webhookId }: DeliveryRow): Promise<number> {
  await tx
    .update(webhookDeliveries)
    .set({ waitingSince: sql`coalesce(${webhookDeliveries.waitingSince}, clock_timestamp())` })
    .where(eq(webhookDeliveries.deliveryId, deliveryId));
  const [line] = await tx
    .select({ count: count() })
    .from(webhookDeliveries)
    .where(and(eq(webhookDeliveries.webhookId, webhookId), isNotNull(webhookDeliveries.waitingSince)));
  return line?.count ?? 1;
}

/** Completes an attempt; false when it was completed before. */
export async function completeAttempt(
  tx: Tx,
  { deliveryId, number }: AttemptKey,
  record: AttemptRecord,
): Promise<boolean> {
  const completed = await tx
    .update(webhookAttempts)
    .set(record)
    .where(
      and(
        eq(webhookAttempts.deliveryId, deliveryId),
        eq(webhookAttempts.number, number),
        eq(webhookAttempts.outcome, 'pending'),
      ),
    )
    .returning({ number: webhookAttempts.number });
  return completed.length === 1;
}

/** Moves a delivery. `nextAttemptAt` is set exactly while it is pending. */
export async function moveDelivery(
  tx: Tx,
  delivery: DeliveryRow,
  to: { readonly status: DeliveryStatus; readonly nextAttemptAt: Date | null },
): Promise<DeliveryRow> {
  await tx
    .update(webhookDeliveries)
    .set({ ...to, waitingSince: null })
    .where(eq(webhookDeliveries.deliveryId, delivery.deliveryId));
  return { ...delivery, ...to, waitingSince: null };
}

/** Signals the delivery that has waited longest for a place: a place is free now. */
export async function signalLongestWaiting(tx: Tx, webhookId: string): Promise<void> {
  const signal: OutboxSignal = 'placeFreed';
  await tx.execute(sql`
    WITH next AS (
      UPDATE ${webhookDeliveries} SET waiting_since = NULL
      WHERE delivery_id = (
        SELECT delivery_id FROM ${webhookDeliveries}
        WHERE webhook_id = ${webhookId} AND waiting_since IS NOT NULL ORDER BY waiting_since LIMIT 1
      )
      RETURNING delivery_id, org_id, webhook_id, generation, request_id
    )
    ${enqueueDeliveriesSql(sql`next`, signal)}`);
}
