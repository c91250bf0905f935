/**
 * The retries that a subscription's workflow makes. They wait without a lane. `retries_at` of the subscription says
 * when its workflow looks for due ones; it is read and set under the subscription's lock. So whoever adds a retry sees
 * whether the workflow must be woken, and no retry is missed.
 */
import { and, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import { subscriptionMessage } from '../../domain/outbox.ts';
import { type DisabledReason, PENDING_COUNT_MAX, type Webhook, type WebhookStatus } from '../../domain/webhook.ts';
import type { Queryable, Tx } from '../client.ts';
import { webhookDeliveries } from '../schema/webhook.ts';
import { statement } from '../statement.ts';
import { enqueue } from './outbox.ts';
import { lockSubscriptions } from './webhook.ts';
import { CLAIMED_COLUMNS, type ClaimedDelivery, claimedText } from './webhook-attempt.ts';

/** Due: by the workflow's clock, or by the database's. */
const dueText = (now: string) => `greatest(${now}::timestamptz, now())`;

const claimStatement = statement<[webhookId: string, claimant: number, now: string], ClaimedDelivery>(
  'claim_retry',
  `WITH claimed AS (
    UPDATE webhook_deliveries d SET claimed_by = $2, claimed_at = now(), redelivery_requested = false
    FROM webhooks w
    WHERE w.webhook_id = $1 AND d.delivery_id = (
      SELECT delivery_id FROM webhook_deliveries
      WHERE webhook_id = $1 AND status = 'pending' AND lane_key IS NULL AND next_attempt_at <= ${dueText('$3')}
        AND endings = (SELECT endings FROM webhooks WHERE webhook_id = $1) AND claimed_by < $2
      ORDER BY next_attempt_at, delivery_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING ${CLAIMED_COLUMNS}
  )
  SELECT ${claimedText('$3::timestamptz')} FROM claimed c`,
);

/** Claims the retry that is due for longest. @param now the workflow's time */
export async function claimRetry(
  db: Queryable,
  webhookId: string,
  { claimant, now }: { readonly claimant: number; readonly now: Date },
): Promise<ClaimedDelivery | undefined> {
  return (await claimStatement(db, webhookId, claimant, now.toISOString()))[0];
}

/** How many retries one statement gives to the lane. */
const RELEASED_AT_ONCE = 1_000;

const releaseStatement = statement<[webhookId: string, now: string, limit: number], never>(
  'release_retries',
  `UPDATE webhook_deliveries d SET lane_key = w.lane_key, next_attempt_at = least(next_attempt_at, now()) FROM webhooks w
  WHERE w.webhook_id = $1 AND d.delivery_id IN (
    SELECT delivery_id FROM webhook_deliveries
    WHERE webhook_id = $1 AND status = 'pending' AND lane_key IS NULL AND next_attempt_at <= ${dueText('$2')}
      AND claimed_by = 0
    ORDER BY next_attempt_at, delivery_id LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)`,
);

/** The endpoint works again: gives due retries to the lane, which sends many at once. They are due by its clock too. */
export async function releaseRetries(db: Queryable, webhookId: string, now: Date): Promise<void> {
  await releaseStatement(db, webhookId, now.toISOString(), RELEASED_AT_ONCE);
}

/** Takes a claimed delivery from its lane: it waits for its subscription's workflow, and is due. */
export async function holdForRetry(tx: Tx, deliveryId: string, claimant: number): Promise<void> {
  await tx
    .update(webhookDeliveries)
    .set({ laneKey: null, claimedBy: 0, claimedAt: null })
    .where(and(eq(webhookDeliveries.deliveryId, deliveryId), eq(webhookDeliveries.claimedBy, claimant)));
}

/** A locked subscription, and when there will be something to do for its workflow. */
type Wake = {
  readonly webhook: Pick<Webhook, 'webhookId' | 'orgId'>;
  /** Absent: now, by the database's clock. With a process's clock that is ahead, its run would begin so much later. */
  readonly at?: Date | undefined;
  readonly requestId: string;
};

type WakeParameters = [webhookIds: readonly string[], times: readonly (string | null)[], haveSlept: boolean];

const wakeStatement = statement<WakeParameters, { readonly webhook_id: string }>(
  'wake_subscriptions',
  `UPDATE webhooks w SET retries_at = f.at FROM (
    SELECT webhook_id, coalesce(given, now()) AS at FROM unnest($1::text[], $2::timestamptz[]) AS g (webhook_id, given)
  ) f
  WHERE w.webhook_id = f.webhook_id AND ($3 OR coalesce(w.retries_at > f.at, true)) RETURNING w.webhook_id`,
);

/** Wakes the workflows of locked subscriptions: with `haveSlept` all, otherwise only those that look later than due. */
export async function wakeSubscriptions(tx: Tx, wakes: readonly Wake[], haveSlept = false): Promise<void> {
  if (wakes.length === 0) return;
  const ids = wakes.map(({ webhook }) => webhook.webhookId);
  const times = wakes.map(({ at }) => at?.toISOString() ?? null);
  const woken = new Set((await wakeStatement(tx, ids, times, haveSlept)).map(({ webhook_id }) => webhook_id));
  const toWake = wakes.filter(({ webhook }) => woken.has(webhook.webhookId));
  await enqueue(tx, ...toWake.map(({ webhook, requestId }) => subscriptionMessage(webhook, requestId)));
}

/** What the workflow of a subscription finds when it looks. Times are as JavaScript writes them. */
export type RetryLook = {
  /** When the next retry is due; null when none is left. */
  readonly nextAttemptAt: string | null;
  /** How many retries wait, counted up to `PENDING_COUNT_MAX`. */
  readonly waiting: number;
  readonly status: WebhookStatus | 'deleted';
  readonly disabledReason: DisabledReason | null;
  readonly failingSince: string | null;
};

/** A time as JavaScript writes it. */
const isoText = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const lookStatement = statement<[webhookId: string, countMax: number], RetryLook>(
  'look_for_retries',
  `WITH held AS MATERIALIZED (
    SELECT next_attempt_at FROM webhook_deliveries
    WHERE webhook_id = $1 AND status = 'pending' AND lane_key IS NULL ORDER BY next_attempt_at LIMIT $2
  ), next AS (
    SELECT least((SELECT min(next_attempt_at) FROM held),
      -- A replay that runs is due now.
      (SELECT now() FROM webhook_replays WHERE webhook_id = $1 AND status = 'running')) AS at
  )
  UPDATE webhooks SET retries_at = next.at FROM next WHERE webhook_id = $1
  RETURNING ${isoText('next.at')} AS "nextAttemptAt", (SELECT count(*)::integer FROM held) AS waiting,
    CASE WHEN deleted_at IS NULL THEN status ELSE 'deleted' END AS status, disabled_reason AS "disabledReason",
    ${isoText('failing_since')} AS "failingSince"`,
);

/**
 * Looks for the next retry and says so in `retries_at`. The subscription is locked before the look, in a statement of
 * its own, so that the look sees every retry that was added under the lock.
 */
export async function lookForRetries(tx: Tx, webhookId: string): Promise<RetryLook> {
  await lockSubscriptions(tx, [webhookId]);
  const [row] = await lookStatement(tx, webhookId, PENDING_COUNT_MAX);
  if (!row) throw new DomainError('not_found');
  return row;
}
