/**
 * Deliveries (contract §11): one row for each event and subscription, also when it is delivered again. A delivery
 * begins again only under its subscription's lock, or by a replay. Its attempts are claimed and recorded by
 * db/queries/webhook-attempt.ts.
 */
import { and, asc, desc, eq, getTableColumns, or, type SQL, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import {
  type Attempt,
  type Attempts,
  type Delivery,
  type DeliveryStatus,
  NO_ATTEMPTS,
  SHOWN_ATTEMPTS_MAX,
} from '../../domain/webhook.ts';
import { type Database, type Queryable, readSnapshot, type Tx } from '../client.ts';
import { webhookAttempts, webhookDeliveries } from '../schema/webhook.ts';
import { statement } from '../statement.ts';
import { type List, pageOf, readPage } from './page.ts';
import { ABANDONED_BEFORE, endedText, REDELIVERED_NOW } from './webhook-attempt.ts';

type DeliveryRow = typeof webhookDeliveries.$inferSelect;

/** What is shown of a delivery that is stored as pending, where `webhooks` is the row of its subscription. */
export const pendingNow = sql<DeliveryStatus>`CASE WHEN webhooks.endings <= webhook_deliveries.endings THEN 'pending'
  WHEN webhooks.deleted_at IS NULL THEN 'skipped' ELSE 'canceled' END`;
/**
 * The status that everyone is shown. A delivery that was pending when its subscription was disabled or deleted has
 * ended with that; its row is changed later. The columns are written with their table, because drizzle leaves it
 * out.
 */
export const shownStatus = sql<DeliveryStatus>`CASE WHEN webhook_deliveries.status <> 'pending'
  THEN webhook_deliveries.status
  ELSE (SELECT ${pendingNow} FROM webhooks WHERE webhooks.webhook_id = webhook_deliveries.webhook_id) END`;

/** As `shownStatus`: what has ended has no next attempt. */
export const shownNextAttemptAt = sql<Date | null>`CASE WHEN webhook_deliveries.status = 'pending' AND EXISTS (
    SELECT 1 FROM webhooks w
    WHERE w.webhook_id = webhook_deliveries.webhook_id AND w.endings <= webhook_deliveries.endings
  ) THEN webhook_deliveries.next_attempt_at END`.mapWith(webhookDeliveries.nextAttemptAt);

const shownColumns = {
  ...getTableColumns(webhookDeliveries),
  status: shownStatus,
  nextAttemptAt: shownNextAttemptAt,
};

/** Nobody clears the claim of a sender that died on a delivery that has ended. */
const shownClaimedAt = sql<Date | null>`CASE WHEN webhook_deliveries.claimed_at >= ${sql.raw(ABANDONED_BEFORE)}
  THEN webhook_deliveries.claimed_at END`.mapWith(webhookDeliveries.claimedAt);

const findEndedStatement = statement<[webhookId: string], unknown>('find_ended_delivery', endedText('LIMIT 1'));

/** The deliveries of a subscription that are shown with this status. Some pending ones may have ended, as skipped. */
async function shownAs(tx: Tx, status: DeliveryStatus, webhookId: string): Promise<SQL | undefined> {
  const { status: stored, endings: own } = webhookDeliveries;
  const endings = sql`(SELECT w.endings FROM webhooks w WHERE w.webhook_id = ${webhookId})`;
  if (status === 'pending') return sql`${stored} = 'pending' AND ${own} >= ${endings}`;
  const hasEnded = status === 'skipped' && (await findEndedStatement(tx, webhookId)).length > 0;
  return or(eq(stored, status), hasEnded ? sql`(${stored} = 'pending' AND ${own} < ${endings})` : undefined);
}

/** A page of deliveries, newest first, each with its last attempts; up to four queries on one snapshot. */
export async function listDeliveries(
  db: Database,
  orgId: string,
  filter: { readonly webhookId: string; readonly status?: DeliveryStatus | undefined; readonly page: Page },
): Promise<Paged<{ delivery: Delivery; attempts: Attempts }>> {
  const { webhookId, status, page } = filter;
  return await readSnapshot(db, async (tx) => {
    const list: List<DeliveryRow> = {
      table: webhookDeliveries,
      where: and(
        eq(webhookDeliveries.orgId, orgId),
        eq(webhookDeliveries.webhookId, webhookId),
        status && (await shownAs(tx, status, webhookId)),
      ),
      createdAt: webhookDeliveries.createdAt,
      id: webhookDeliveries.deliveryId,
      cursorOf: ({ createdAt: at, deliveryId: id }) => ({ at, id }),
    };
    const shown = tx.select({ ...shownColumns, claimedAt: shownClaimedAt }).from(webhookDeliveries);
    const paged = await readPage(tx, list, page, pageOf(shown.$dynamic()));
    const attempts = await listAttempts(tx, paged.items);
    const items = paged.items.map((delivery) => ({
      delivery,
      attempts: attempts.get(delivery.deliveryId) ?? NO_ATTEMPTS,
    }));
    return { ...paged, items };
  });
}

/**
 * The last attempts of each of these deliveries, with the one that is under way. A delivery's attempts are numbered
 * from 1 without a gap.
 */
async function listAttempts(db: Queryable, deliveries: readonly Delivery[]): Promise<Map<string, Attempts>> {
  if (deliveries.length === 0) return new Map();
  const { deliveryId, number, at, outcome, responseStatus, durationMs, error } = webhookAttempts;
  const wanted = sql`unnest(${sql.param(deliveries.map((delivery) => delivery.deliveryId))}::text[])`;
  const last = db
    .select({ deliveryId, number, at, outcome, responseStatus, durationMs, error })
    .from(webhookAttempts)
    .where(sql`${deliveryId} = wanted.delivery_id`)
    .orderBy(desc(number))
    .limit(SHOWN_ATTEMPTS_MAX)
    .as('last');
  const rows = await db
    .select()
    .from(sql`${wanted} AS wanted (delivery_id)`)
    .crossJoinLateral(last)
    .orderBy(asc(last.number));
  const ended = new Map<string, Attempt[]>(deliveries.map((delivery) => [delivery.deliveryId, []]));
  for (const { last: row } of rows) {
    const { deliveryId: of, ...attempt } = row;
    ended.get(of)?.push(attempt);
  }
  return new Map(
    deliveries.map((delivery) => [
      delivery.deliveryId,
      withAttemptUnderWay(delivery, ended.get(delivery.deliveryId) ?? []),
    ]),
  );
}

function withAttemptUnderWay({ attemptCount: count, claimedAt }: Delivery, ended: readonly Attempt[]): Attempts {
  if (claimedAt === null) return { count, last: ended };
  const underWay: Attempt = {
    number: count + 1,
    at: claimedAt,
    outcome: 'pending',
    responseStatus: null,
    durationMs: null,
    error: null,
  };
  return { count: count + 1, last: [...ended, underWay].slice(-SHOWN_ATTEMPTS_MAX) };
}

/**
 * Locks a delivery until the transaction ends, so that no run records an attempt of it meanwhile.
 *
 * @throws DomainError `not_found`, for another organization's or another subscription's delivery as well
 */
export async function lockDelivery(
  tx: Tx,
  orgId: string,
  key: { readonly webhookId: string; readonly deliveryId: string },
): Promise<Delivery> {
  const [row] = await tx
    .select(shownColumns)
    .from(webhookDeliveries)
    .where(
      and(
        eq(webhookDeliveries.orgId, orgId),
        eq(webhookDeliveries.webhookId, key.webhookId),
        eq(webhookDeliveries.deliveryId, key.deliveryId),
      ),
    )
    .for('no key update', { of: webhookDeliveries });
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

/**
 * What a redelivery changes in a delivery `d`. An ended one begins a new generation, whose attempts follow those made so
 * far; a pending one makes its next attempt now. While an attempt is under way, this is remembered: if it fails, the next
 * one follows at once, and if it was the last one, a new generation begins.
 *
 * It reads a row `r`: `endings` and `lane_key` of the subscription, and the `request_id` of who asks.
 *
 * @param isPending whether the delivery is shown as pending
 */
export const redeliveredText = (isPending: string): string => `status = 'pending', endings = r.endings,
      generation = CASE WHEN ${isPending} THEN d.generation ELSE d.generation + 1 END,
      prior_attempts = CASE WHEN ${isPending} THEN d.prior_attempts ELSE d.attempt_count END,
      redelivered_at = CASE WHEN ${isPending} THEN d.redelivered_at ELSE ${REDELIVERED_NOW} END,
      request_id = CASE WHEN ${isPending} THEN d.request_id ELSE r.request_id END,
      next_attempt_at = CASE WHEN ${isPending} THEN least(d.next_attempt_at, now()) ELSE now() END,
      -- While somebody else sends it, it stays with that sender.
      lane_key = CASE WHEN ${isPending} AND d.claimed_by <> 0 THEN d.lane_key ELSE r.lane_key END,
      redelivery_requested = d.claimed_by <> 0`;

const redeliverStatement = statement<[deliveryId: string, isPending: boolean, requestId: string], never>(
  'redeliver',
  `UPDATE webhook_deliveries d SET ${redeliveredText('$2::boolean')}
  FROM (SELECT webhook_id, endings, lane_key, $3::text AS request_id FROM webhooks) r
  WHERE d.delivery_id = $1 AND r.webhook_id = d.webhook_id`,
);

/** Sends a locked delivery again. @returns what it is now */
export async function sendAgain(tx: Tx, delivery: Delivery, requestId: string): Promise<Delivery> {
  await redeliverStatement(tx, delivery.deliveryId, delivery.status === 'pending', requestId);
  return await lockDelivery(tx, delivery.orgId, delivery);
}
