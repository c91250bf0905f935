/**
 * Deliveries (contract §11): one row for each event and subscription, also when it is delivered again. A delivery
 * changes only under its subscription's lock, together with the outbox row that signals its workflow.
 */
import { and, asc, eq, inArray, max, type SQL, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { OutboxKind, OutboxSignal } from '../../domain/outbox.ts';
import type { Page, Paged } from '../../domain/page.ts';
import type { Attempt, Delivery, DeliveryStatus, Webhook } from '../../domain/webhook.ts';
import { type Database, type Queryable, readSnapshot, type Tx } from '../client.ts';
import { outbox } from '../schema/outbox.ts';
import { webhookAttempts, webhookDeliveries } from '../schema/webhook.ts';
import { currentTraceparent } from '../traceparent.ts';
import type { Stamp } from './event.ts';
import { type List, readPage } from './page.ts';

export type DeliveryRow = typeof webhookDeliveries.$inferSelect;

const DELIVERY_KIND = 'webhook_delivery' satisfies OutboxKind;

/**
 * The end of a statement: writes the outbox rows that start the workflows of these deliveries, or signal them.
 *
 * @param source rows with delivery_id, org_id, webhook_id, generation and request_id
 * @param signal null only starts the workflow
 */
export const enqueueDeliveriesSql = (source: SQL, signal: string | null): SQL => sql`
    INSERT INTO ${outbox} (kind, object_id, signal, context, request_id, traceparent)
    SELECT ${DELIVERY_KIND}, delivery_id, ${signal}::text,
      jsonb_build_object('orgId', org_id, 'webhookId', webhook_id, 'generation', generation::text),
      request_id, ${currentTraceparent()}::text
    FROM ${source}`;

/** A page of deliveries, newest first, each with its attempts; three queries on one snapshot. */
export async function listDeliveries(
  db: Database,
  orgId: string,
  filter: { readonly webhookId: string; readonly status?: DeliveryStatus | undefined; readonly page: Page },
): Promise<Paged<{ delivery: Delivery; attempts: Attempt[] }>> {
  const { webhookId, status, page } = filter;
  const wanted = and(
    eq(webhookDeliveries.orgId, orgId),
    eq(webhookDeliveries.webhookId, webhookId),
    status === undefined ? undefined : eq(webhookDeliveries.status, status),
  );
  const list: List<DeliveryRow> = {
    table: webhookDeliveries,
    where: wanted,
    createdAt: webhookDeliveries.createdAt,
    id: webhookDeliveries.deliveryId,
    cursorOf: ({ createdAt: at, deliveryId: id }) => ({ at, id }),
  };
  return await readSnapshot(db, async (tx) => {
    const paged = await readPage(tx, list, page, ({ where, orderBy, limit, offset }) =>
      tx
        .select()
        .from(webhookDeliveries)
        .where(where)
        .orderBy(...orderBy)
        .limit(limit)
        .offset(offset),
    );
    const attempts = await listAttempts(
      tx,
      paged.items.map(({ deliveryId }) => deliveryId),
    );
    const items = paged.items.map((delivery) => ({ delivery, attempts: attempts.get(delivery.deliveryId) ?? [] }));
    return { ...paged, items };
  });
}

/** The attempts of each of these deliveries, in the order of their numbers. */
export async function listAttempts(db: Queryable, deliveryIds: readonly string[]): Promise<Map<string, Attempt[]>> {
  const byDelivery = new Map<string, Attempt[]>(deliveryIds.map((deliveryId) => [deliveryId, []]));
  if (deliveryIds.length === 0) return byDelivery;
  const { deliveryId, number, at, outcome, responseStatus, durationMs, error } = webhookAttempts;
  const rows = await db
    .select({ deliveryId, number, at, outcome, responseStatus, durationMs, error })
    .from(webhookAttempts)
    .where(inArray(deliveryId, [...deliveryIds]))
    .orderBy(asc(number));
  for (const { deliveryId: of, ...attempt } of rows) byDelivery.get(of)?.push(attempt);
  return byDelivery;
}

/** @throws DomainError `not_found`, for another organization's or another subscription's delivery as well */
export async function getDelivery(
  db: Queryable,
  orgId: string,
  key: { readonly webhookId: string; readonly deliveryId: string },
): Promise<Delivery> {
  const [row] = await db
    .select()
    .from(webhookDeliveries)
    .where(
      and(
        eq(webhookDeliveries.orgId, orgId),
        eq(webhookDeliveries.webhookId, key.webhookId),
        eq(webhookDeliveries.deliveryId, key.deliveryId),
      ),
    )
    .limit(1);
  if (!row) throw new DomainError('not_found');
  return row;
}

/** The delivery of a ping, which exists for this subscription only. */
export async function getDeliveryOfEvent(tx: Tx, webhookId: string, eventId: string): Promise<Delivery> {
  const [row] = await tx
    .select()
    .from(webhookDeliveries)
    .where(and(eq(webhookDeliveries.eventId, eventId), eq(webhookDeliveries.webhookId, webhookId)))
    .limit(1);
  if (!row) throw new Error(`event ${eventId} was recorded without its delivery`);
  return row;
}

/** Makes a finished delivery pending again, as a new generation whose attempts follow those made so far. */
export async function beginGeneration(tx: Tx, delivery: Delivery, { at, requestId }: Stamp): Promise<Delivery> {
  const [last] = await tx
    .select({ number: max(webhookAttempts.number) })
    .from(webhookAttempts)
    .where(eq(webhookAttempts.deliveryId, delivery.deliveryId));
  const [begun] = await tx
    .update(webhookDeliveries)
    .set({
      status: 'pending',
      generation: delivery.generation + 1,
      requested: true,
      priorAttempts: last?.number ?? 0,
      nextAttemptAt: at,
      waitingSince: null,
      requestId,
    })
    .where(eq(webhookDeliveries.deliveryId, delivery.deliveryId))
    .returning();
  if (!begun) throw new Error(`delivery ${delivery.deliveryId} does not exist any more`);
  return begun;
}

/** Ends the pending deliveries of a locked subscription and signals their workflows; one statement. */
export async function endPendingDeliveries(tx: Tx, webhook: Webhook, to: 'skipped' | 'canceled'): Promise<void> {
  const signal: OutboxSignal = 'subscriptionChanged';
  await tx.execute(sql`
    WITH ended AS (
      UPDATE ${webhookDeliveries} SET status = ${to}, next_attempt_at = NULL, waiting_since = NULL
      WHERE webhook_id = ${webhook.webhookId} AND status = 'pending'
      RETURNING delivery_id, org_id, webhook_id, generation, request_id
    )
    ${enqueueDeliveriesSql(sql`ended`, signal)}`);
}

/**
 * The status of a generation of a delivery: `skipped` once a later generation has begun.
 *
 * @throws DomainError `not_found`
 */
export async function getDeliveryStatus(
  db: Queryable,
  orgId: string,
  generationOf: { readonly deliveryId: string; readonly generation: number },
): Promise<DeliveryStatus> {
  const [row] = await db
    .select({ status: webhookDeliveries.status, generation: webhookDeliveries.generation })
    .from(webhookDeliveries)
    .where(and(eq(webhookDeliveries.orgId, orgId), eq(webhookDeliveries.deliveryId, generationOf.deliveryId)));
  if (!row) throw new DomainError('not_found');
  return row.generation === generationOf.generation ? row.status : 'skipped';
}
