/**
 * Replays (contract §11): what a subscription missed is sent again, oldest first, in steps of one statement. A step
 * changes its deliveries and moves the replay's position in the order of creation: so each delivery is looked at once,
 * whatever dies in between. A step waits for no delivery that somebody else holds: it ends before the first of these.
 */
import { and, eq, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import { REDELIVERIES_MAX, REDELIVERY_WINDOW_MS, REPLAY_STEP, type Replay } from '../../domain/webhook.ts';
import type { Queryable, Tx } from '../client.ts';
import { webhookReplays } from '../schema/webhook.ts';
import { statement } from '../statement.ts';
import { redeliveredText } from './webhook-delivery.ts';

const isRunning = (webhookId: string) =>
  and(eq(webhookReplays.webhookId, webhookId), sql`${webhookReplays.status} = 'running'`);

/** The running replay of a subscription. */
export async function findRunningReplay(db: Queryable, webhookId: string): Promise<Replay | undefined> {
  const [row] = await db.select().from(webhookReplays).where(isRunning(webhookId)).limit(1);
  return row;
}

/** @throws DomainError `not_found`, for another organization's or another subscription's replay as well */
export async function getReplay(
  db: Queryable,
  orgId: string,
  { webhookId, replayId }: Pick<Replay, 'webhookId' | 'replayId'>,
): Promise<Replay> {
  const own = eq(webhookReplays.replayId, replayId);
  const [row] = await db
    .select()
    .from(webhookReplays)
    .where(and(eq(webhookReplays.orgId, orgId), eq(webhookReplays.webhookId, webhookId), own))
    .limit(1);
  if (!row) throw new DomainError('not_found');
  return row;
}

export type NewReplay = Pick<
  Replay,
  'replayId' | 'webhookId' | 'orgId' | 'since' | 'until' | 'statuses' | 'eventTypes'
> & { readonly requestId: string };

/** Writes a running replay. It begins on the clock of the deliveries, which is the database's. */
export async function insertReplay(tx: Tx, { statuses, eventTypes, ...replay }: NewReplay): Promise<void> {
  await tx.insert(webhookReplays).values({
    ...replay,
    statuses: [...statuses],
    eventTypes: eventTypes && [...eventTypes],
    status: 'running',
    reachedAt: replay.since,
    createdAt: sql`now()`,
  });
}

/** Ends the running replay of a subscription that is disabled or deleted, after the step that is under way. */
export async function cancelReplay(tx: Tx, webhookId: string): Promise<void> {
  await tx.update(webhookReplays).set({ status: 'canceled', finishedAt: sql`now()` }).where(isRunning(webhookId));
}

/** The status that a delivery `d` is shown with, while its subscription is not deleted. */
const SHOWN = `CASE WHEN d.status = 'pending' AND d.endings < r.endings THEN 'skipped' ELSE d.status END`;
const IS_WANTED = `(${SHOWN}) = ANY (r.statuses) AND (r.event_types IS NULL OR d.event_type = ANY (r.event_types))`;
/** Its owner may begin no more generations today: as `redeliverableAt` (domain/webhook.ts). */
const IS_USED_UP = `coalesce(cardinality(d.redelivered_at) >= ${REDELIVERIES_MAX}
      AND d.redelivered_at[cardinality(d.redelivered_at) - ${REDELIVERIES_MAX - 1}]
        > now() - ${REDELIVERY_WINDOW_MS} * interval '1 millisecond', false)`;

const stepStatement = statement<[webhookId: string], { readonly looked: number; readonly taken: number }>(
  'replay_step',
  `WITH replay AS MATERIALIZED (
    SELECT r.replay_id, r.webhook_id, r.until, r.statuses, r.event_types, r.reached_at, r.reached_id, r.request_id,
      r.created_at, w.endings, w.lane_key
    FROM webhook_replays r JOIN webhooks w ON w.webhook_id = r.webhook_id
    WHERE r.webhook_id = $1 AND r.status = 'running' FOR NO KEY UPDATE OF r
  ), looked AS MATERIALIZED (
    SELECT next.delivery_id, next.created_at, next.is_wanted,
      row_number() OVER (ORDER BY next.created_at, next.delivery_id) AS place
    FROM replay r, LATERAL (
      SELECT d.delivery_id, d.created_at, ${IS_WANTED} AS is_wanted FROM webhook_deliveries d
      WHERE d.webhook_id = r.webhook_id AND (d.created_at, d.delivery_id) > (r.reached_at, r.reached_id)
        AND d.created_at <= r.created_at AND d.created_at < coalesce(r.until, 'infinity')
      ORDER BY d.created_at, d.delivery_id LIMIT ${REPLAY_STEP}
    ) next
  ), locked AS MATERIALIZED (
    SELECT d.delivery_id, d.status, d.endings, d.event_type, d.claimed_by, d.redelivered_at FROM webhook_deliveries d
    WHERE d.delivery_id IN (SELECT delivery_id FROM looked WHERE is_wanted) FOR NO KEY UPDATE SKIP LOCKED
  ), taken AS MATERIALIZED (
    SELECT delivery_id, created_at, place FROM looked WHERE place < coalesce((
      SELECT min(place) FROM looked WHERE is_wanted AND delivery_id NOT IN (SELECT delivery_id FROM locked)
    ), ${REPLAY_STEP + 1})
  ), judged AS MATERIALIZED (
    -- By the locked rows: a delivery may have ended since the look.
    SELECT d.delivery_id, (${SHOWN}) = 'pending' AS is_pending,
      ${IS_USED_UP} AND ((${SHOWN}) <> 'pending' OR d.claimed_by <> 0) AS is_left_out
    FROM taken t JOIN locked d ON d.delivery_id = t.delivery_id, replay r WHERE ${IS_WANTED}
  ), sent AS (
    UPDATE webhook_deliveries d SET ${redeliveredText('j.is_pending')}
    FROM judged j, replay r WHERE d.delivery_id = j.delivery_id AND NOT j.is_left_out
    RETURNING 1
  ), moved AS (
    UPDATE webhook_replays m SET sent = m.sent + (SELECT count(*) FROM sent),
      skipped = m.skipped + (SELECT count(*) FROM judged WHERE is_left_out),
      reached_at = coalesce(last.created_at, m.reached_at), reached_id = coalesce(last.delivery_id, m.reached_id),
      status = CASE WHEN step.is_last THEN 'completed' ELSE 'running' END,
      finished_at = CASE WHEN step.is_last THEN now() END
    FROM replay r CROSS JOIN (
      SELECT (SELECT count(*) FROM looked) AS looked, (SELECT count(*) FROM taken) AS taken,
        (SELECT count(*) FROM looked) < ${REPLAY_STEP} AND (SELECT count(*) FROM looked) = (SELECT count(*) FROM taken)
          AS is_last
    ) step LEFT JOIN (SELECT delivery_id, created_at FROM taken ORDER BY place DESC LIMIT 1) last ON true
    WHERE m.replay_id = r.replay_id
    RETURNING step.looked::integer, step.taken::integer
  )
  SELECT looked, taken FROM moved`,
);

/**
 * `held`: the replay goes on once somebody else releases the next delivery. `none`: no replay runs, or it has just
 * ended.
 */
export type ReplayProgress = 'more' | 'held' | 'none';

/** Carries out the next step of the subscription's running replay, if there is one. */
export async function takeReplayStep(db: Queryable, webhookId: string): Promise<ReplayProgress> {
  const [step] = await stepStatement(db, webhookId);
  if (!step || (step.taken === step.looked && step.looked < REPLAY_STEP)) return 'none';
  return step.taken === 0 ? 'held' : 'more';
}
