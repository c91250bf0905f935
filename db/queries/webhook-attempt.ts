/**
 * What becomes of an attempt. An activity that sends has a number, its claim on a delivery bears it, and only its own
 * results count. A later activity takes what an earlier one has left: so nothing waits for a process that died.
 */
import { REDELIVERIES_MAX } from '../../domain/webhook.ts';
import type { Queryable } from '../client.ts';
import { statement } from '../statement.ts';

/** A delivery that is claimed and not yet sent, with what its request needs. */
export type ClaimedDelivery = {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly orgId: string;
  readonly eventId: string;
  /** The number of this attempt within its generation, from 1. */
  readonly attempt: number;
  /** A lane sends it; else the subscription's workflow. */
  readonly isInLane: boolean;
  readonly body: Buffer;
  readonly requestId: string;
  /** On the database's clock, as PostgreSQL writes it. */
  readonly claimedAt: string;
  /** Of an event's first attempt: how long it was due when it was claimed. Null for a retry, and what is sent again. */
  readonly lateMs: number | null;
  readonly traceparent: string | null;
  readonly url: string;
  /** Of its subscription. */
  readonly endings: number;
  /** Of its subscription: sealed, the current one first, then the earlier ones that still sign. */
  readonly secretsSealed: readonly string[];
  /** Its subscription has failed since its last success. */
  readonly isFailing: boolean;
};

/** The sender of an earlier claim has died: this is longer than any attempt takes, with the recording of its result. */
export const ABANDONED_BEFORE = `now() - interval '2 minutes'`;

/** What a claim returns of a delivery `d` and its subscription `w`: add it to the columns of an UPDATE's RETURNING. */
export const CLAIMED_COLUMNS = `d.delivery_id, d.webhook_id, d.org_id, d.event_id, d.request_id, d.claimed_at, d.traceparent,
    1 + d.attempt_count - d.prior_attempts AS attempt, d.lane_key,
    CASE WHEN d.generation = 1 AND d.attempt_count = 0 THEN 1000 * extract(epoch FROM now() - d.next_attempt_at)::float8
      END AS late_ms, w.url, w.endings, w.secret_sealed, w.failing_since`;

/**
 * The columns of a `ClaimedDelivery`, for rows `c` with the columns above.
 *
 * @param now the time that decides which earlier secrets still sign
 */
export const claimedText = (now: string): string => `c.delivery_id AS "deliveryId", c.webhook_id AS "webhookId",
    c.org_id AS "orgId", c.event_id AS "eventId", c.attempt,
    c.lane_key IS NOT NULL AS "isInLane", c.request_id AS "requestId", c.claimed_at AS "claimedAt",
    c.late_ms AS "lateMs",
    c.traceparent, (SELECT body FROM events e WHERE e.event_id = c.event_id) AS body, c.url, c.endings,
    c.failing_since IS NOT NULL AS "isFailing", array_remove(ARRAY[c.secret_sealed], NULL) || ARRAY(
      SELECT s.secret_sealed FROM webhook_earlier_secrets s
      WHERE s.webhook_id = c.webhook_id AND s.expires_at > ${now} ORDER BY s.expires_at DESC, s.secret_id DESC
    ) AS "secretsSealed"`;

const openStatement = statement<[], { readonly claimant: string }>(
  'open_claimant',
  `SELECT nextval('webhook_claimants')::text AS claimant`,
);

/** The number of an activity that begins to send; higher than that of every earlier one. */
export async function openClaimant(db: Queryable): Promise<number> {
  return Number((await openStatement(db))[0]?.claimant);
}

/** The result of an attempt, as it is recorded. The digest is written as hex. */
export type AttemptResult = {
  readonly webhook_id: string;
  readonly delivery_id: string;
  /** Names its claim, with the claimant. */
  readonly claimed_at: string;
  readonly at: string;
  readonly outcome: 'succeeded' | 'failed';
  readonly response_status: number | null;
  readonly response_bytes: number | null;
  readonly response_sha256: string | null;
  readonly duration_ms: number;
  readonly error: string | null;
  /** How long a request before this one took, which was lost with a kept connection; null if there was none. */
  readonly lost_ms: number | null;
  /** Null after the last attempt of a generation. */
  readonly next_attempt_at: string | null;
  /** Its lane makes the next attempt. */
  readonly stays_in_lane: boolean;
};

/**
 * Where a delivery goes from the result `r`, by its own row `d` and its subscription's `w`. They are read from the row
 * that is updated, so that a redelivery that was asked for meanwhile is seen.
 */
const JUDGED_STATUS = `CASE
  -- An event that arrived while its subscription was disabled has arrived nevertheless.
  WHEN r.outcome = 'succeeded' AND w.deleted_at IS NULL THEN 'succeeded'
  WHEN d.status <> 'pending' THEN d.status
  WHEN w.deleted_at IS NOT NULL THEN 'canceled'
  -- What was asked for since is sent once, although the subscription is disabled.
  WHEN d.endings < w.endings OR w.status = 'disabled' AND NOT d.redelivery_requested THEN 'skipped'
  WHEN r.next_attempt_at IS NULL AND NOT d.redelivery_requested THEN 'exhausted'
  ELSE 'pending' END`;
const IS_PENDING = `(${JUDGED_STATUS}) = 'pending'`;
/** A request that was lost with a kept connection is an attempt of its own. */
const LOST = '(r.lost_ms IS NOT NULL)::integer';
const NUMBER = `d.attempt_count + 1 + ${LOST}`;
/**
 * A redelivery was asked for during the last attempt: the next attempt is the first one of a new generation. Where the
 * subscription was disabled during that attempt, the redelivery itself has begun the generation.
 */
const BEGINS_AGAIN = `(${IS_PENDING} AND r.next_attempt_at IS NULL AND d.attempt_count > d.prior_attempts)`;

/** `redelivered_at` of a delivery `d` whose next generation begins now. */
export const REDELIVERED_NOW = `(array_append(d.redelivered_at, now()))[greatest(1, cardinality(d.redelivered_at) - ${REDELIVERIES_MAX - 2}):]`;

/**
 * The common table expressions that record results: `$1` is their JSON, `$2` the claimant. An attempt that failed makes
 * its delivery wait for the retry, in its lane or without one. A result of a delivery that has been claimed since, also
 * by the same claimant, is dropped.
 *
 * @param from what they read first, with a comma
 */
export const recordedText = (from = ''): string => `
  result AS (
    SELECT r.* FROM ${from} jsonb_to_recordset($1::jsonb) AS r (webhook_id text, delivery_id text, claimed_at timestamptz,
      at timestamptz, outcome text, response_status integer, response_bytes integer, response_sha256 text,
      duration_ms integer, error text, lost_ms integer, next_attempt_at timestamptz, stays_in_lane boolean)
    -- Also tells the planner that these are few, so that it looks each delivery up, even while the table is small.
    WHERE r.outcome IN ('succeeded', 'failed') AND r.duration_ms >= 0
  ), recorded AS (
    UPDATE webhook_deliveries d SET attempt_count = ${NUMBER}, claimed_by = 0, claimed_at = NULL,
      redelivery_requested = false, status = ${JUDGED_STATUS},
      lane_key = CASE WHEN ${IS_PENDING} AND (d.redelivery_requested OR r.stays_in_lane) THEN w.lane_key END,
      next_attempt_at = CASE WHEN ${IS_PENDING}
        THEN CASE WHEN d.redelivery_requested THEN now() ELSE r.next_attempt_at END END,
      generation = d.generation + CASE WHEN ${BEGINS_AGAIN} THEN 1 ELSE 0 END,
      -- A lost request is an attempt of its own, which takes no retry away.
      prior_attempts = CASE WHEN ${BEGINS_AGAIN} THEN ${NUMBER} ELSE d.prior_attempts + ${LOST} END,
      redelivered_at = CASE WHEN ${BEGINS_AGAIN} THEN ${REDELIVERED_NOW} ELSE d.redelivered_at END
    FROM result r JOIN webhooks w ON w.webhook_id = r.webhook_id
    WHERE d.delivery_id = r.delivery_id AND d.claimed_by = $2 AND d.claimed_at = r.claimed_at
    RETURNING d.delivery_id, d.attempt_count, d.created_at, r.at AS sent_at, r.outcome, r.response_status,
      r.response_bytes, r.response_sha256, r.duration_ms, r.error, r.lost_ms
  ), timed AS (
    -- The times of a delivery increase, whatever the clocks of its senders say.
    SELECT r.*, greatest(r.sent_at, r.created_at, (
        SELECT p.at FROM webhook_attempts p
        WHERE p.delivery_id = r.delivery_id AND p.number = r.attempt_count - 1 - (r.lost_ms IS NOT NULL)::integer
      )) AS at
    FROM recorded r
  ), attempt AS (
    INSERT INTO webhook_attempts (delivery_id, number, at, outcome, response_status, response_bytes, response_sha256,
      duration_ms, error)
    SELECT delivery_id, attempt_count, at + coalesce(lost_ms, 0) * interval '1 millisecond', outcome, response_status,
      response_bytes, decode(response_sha256, 'hex'), duration_ms, error
    FROM timed
    UNION ALL
    SELECT delivery_id, attempt_count - 1, at, 'failed', NULL, NULL, NULL, lost_ms, 'connection_lost'
    FROM timed WHERE lost_ms IS NOT NULL
  )`;

const recordStatement = statement<[results: string, claimant: number], never>(
  'record_attempts',
  `WITH ${recordedText()} SELECT`,
);

/** Records the results of attempts and moves their deliveries. Recording them again changes nothing. */
export async function recordResults(db: Queryable, claimant: number, results: readonly AttemptResult[]): Promise<void> {
  await recordStatement(db, JSON.stringify(results), claimant);
}

/** How many deliveries one statement ends. */
const ENDED_AT_ONCE = 1_000;

/** Pending deliveries of the subscription $1 that have ended, among its retries and what its lane sends. */
export const endedText = (cut: string): string => `
  SELECT delivery_id FROM (
    SELECT delivery_id FROM webhook_deliveries
    WHERE webhook_id = $1 AND status = 'pending' AND lane_key IS NULL
      AND endings < (SELECT endings FROM webhooks WHERE webhook_id = $1)
    ${cut}
  ) retries
  UNION ALL
  SELECT delivery_id FROM (
    SELECT delivery_id FROM webhook_deliveries
    WHERE (lane_key, org_id, webhook_id) = (SELECT lane_key, org_id, webhook_id FROM webhooks WHERE webhook_id = $1)
      AND endings < (SELECT endings FROM webhooks WHERE webhook_id = $1)
    ${cut}
  ) due`;

const endStatement = statement<[webhookId: string, limit: number], { ended: number }>(
  'end_deliveries',
  `WITH ended AS (
    UPDATE webhook_deliveries d SET status = CASE WHEN w.deleted_at IS NULL THEN 'skipped' ELSE 'canceled' END,
      next_attempt_at = NULL, lane_key = NULL
    FROM webhooks w
    WHERE w.webhook_id = $1 AND d.delivery_id IN (${endedText('LIMIT $2 FOR UPDATE SKIP LOCKED')})
    RETURNING 1
  )
  SELECT count(*)::integer AS ended FROM ended`,
);

/**
 * Ends deliveries that were pending when their subscription was disabled or deleted, a bounded number of them.
 *
 * @returns whether there may be more
 */
export async function endDeliveries(db: Queryable, webhookId: string): Promise<boolean> {
  const [row] = await endStatement(db, webhookId, ENDED_AT_ONCE);
  return (row?.ended ?? 0) >= ENDED_AT_ONCE;
}
