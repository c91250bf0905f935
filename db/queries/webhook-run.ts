/**
 * What a subscription's run does in the database: it claims deliveries that are due, records what became of them, and
 * looks once more before it ends. Each is one statement for many deliveries.
 *
 * No delivery is forgotten, although a busy subscription is never woken. A transaction that writes a delivery reads
 * `running` of the subscription's row in `webhook_runs` under a shared lock, which it holds until it has committed: if
 * nothing runs, it also writes a row of the outbox. A run clears `running` under an exclusive lock, and only if it then
 * finds nothing to do. So a writer either is seen by that look, or sees `running` cleared and wakes the subscription.
 *
 * It has more than 300 lines, because the statements are one protocol and are read together.
 */
import { sql } from 'drizzle-orm';
import { type DisabledReason, PENDING_COUNT_MAX, type WebhookStatus } from '../../domain/webhook.ts';
import type { Queryable, Tx } from '../client.ts';
import { statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';

/** Longer than any attempt takes. After it, an attempt that is still pending counts as lost. */
const LEASE_SECONDS = 30;
/** How many deliveries one statement ends. */
const ENDED_AT_ONCE = 1_000;

/**
 * Inserts the outbox rows that wake subscriptions. One that is not claimed yet stands for all that is committed while
 * it waits.
 *
 * @param source rows with webhook_id, org_id, request_id and traceparent
 */
export const wakeSql = (source: string): string => `
    INSERT INTO outbox (kind, object_id, signal, context, request_id, traceparent)
    SELECT 'webhook_subscription', webhook_id, 'deliveriesCommitted', jsonb_build_object('orgId', org_id),
      request_id, traceparent
    FROM ${source}
    ON CONFLICT (object_id) WHERE kind = 'webhook_subscription' AND NOT claimed DO NOTHING`;

const wake = statement<[webhookId: string, orgId: string, requestId: string, traceparent: string | null], never>(
  'wake_subscription',
  `WITH run AS (
    SELECT webhook_id, $2::text AS org_id, $3::text AS request_id, $4::text AS traceparent, running
    FROM webhook_runs WHERE webhook_id = $1 FOR SHARE
  ), unattended AS (SELECT * FROM run WHERE NOT running)
  ${wakeSql('unattended')}`,
);

/** Wakes a subscription after a change of its deliveries in this transaction, unless a run is active. */
export async function wakeSubscription(
  tx: Tx,
  { webhookId, orgId }: { readonly webhookId: string; readonly orgId: string },
  requestId: string,
): Promise<void> {
  await wake(tx, webhookId, orgId, requestId, currentTraceparent());
}

const open = statement<[webhookId: string], { run: string; is_failing: boolean; now: string }>(
  'open_webhook_run',
  // It never waits for the writers: without the flag they only wake more often.
  `WITH flag AS (
    UPDATE webhook_runs SET running = true WHERE webhook_id = (
      SELECT webhook_id FROM webhook_runs WHERE webhook_id = $1 AND NOT running FOR NO KEY UPDATE SKIP LOCKED
    )
  )
  SELECT nextval('webhook_run_numbers')::text AS run, failing_since IS NOT NULL AS is_failing, now()
  FROM webhooks WHERE webhook_id = $1`,
);

/** @returns `run`: the number of this run, higher than that of any earlier one; `now`: the database's time */
export async function openRun(
  db: Queryable,
  webhookId: string,
): Promise<{ readonly run: number; readonly isFailing: boolean; readonly now: Date }> {
  const [row] = await open(db, webhookId);
  if (!row) throw new Error(`subscription ${webhookId} does not exist`);
  return { run: Number(row.run), isFailing: row.is_failing, now: new Date(row.now) };
}

/** Marks no subscription as running: until its run ends, a subscription is woken more often than it needs. */
export async function clearRunning(tx: Tx): Promise<void> {
  await tx.execute(sql`UPDATE webhook_runs SET running = false WHERE running`);
}

/** A subscription, also a deleted one, as the sender needs it: with its sealed secrets, the current one first. */
export type Subscription = {
  readonly url: string;
  readonly status: WebhookStatus;
  readonly failingSince: Date | null;
  readonly secretsSealed: readonly string[];
  /** It has pending deliveries that it had before it was disabled or deleted. */
  readonly hasEnded: boolean;
};

/** A delivery whose attempt is recorded as begun and not yet sent. */
export type ClaimedDelivery = {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly generation: number;
  /** Counts all attempts of the delivery. */
  readonly number: number;
  /** Counts from 1 within the generation. */
  readonly attempt: number;
  readonly body: Buffer;
  readonly traceparent: string | null;
};

type ClaimRow = {
  url: string;
  status: WebhookStatus;
  failing_since: string | null;
  secrets_sealed: readonly string[];
  has_ended: boolean;
  delivery_id: string | null;
  event_id: string;
  generation: number;
  number: number;
  prior_attempts: number;
  body: Buffer;
  traceparent: string | null;
};

/** Due: by the run's clock, or by the database's, which dates the first attempts. */
const dueText = (now: string) => `greatest(${now}::timestamptz, now())`;

const claim = statement<[webhookId: string, run: number, now: string, limit: number, leaseSeconds: number], ClaimRow>(
  'claim_deliveries',
  `WITH due AS MATERIALIZED (
    SELECT delivery_id FROM webhook_deliveries
    WHERE webhook_id = $1 AND status = 'pending' AND endings = (SELECT endings FROM webhooks WHERE webhook_id = $1)
      AND next_attempt_at <= ${dueText('$3')} AND claimed_by < $2
    ORDER BY next_attempt_at, delivery_id LIMIT $4 FOR UPDATE SKIP LOCKED
  ), claimed AS (
    UPDATE webhook_deliveries d SET claimed_by = $2, redelivery_requested = false
    FROM due WHERE d.delivery_id = due.delivery_id
    RETURNING d.delivery_id, d.event_id, d.generation, d.prior_attempts, d.traceparent, d.created_at, d.next_attempt_at
  ), numbered AS (
    SELECT c.delivery_id, greatest($3::timestamptz, c.created_at, past.at) AS at,
      1 + greatest(c.prior_attempts, coalesce(past.ended, 0)) AS number
    FROM claimed c CROSS JOIN LATERAL (
      SELECT max(at) AS at, max(number) FILTER (WHERE outcome <> 'pending') AS ended
      FROM webhook_attempts a WHERE a.delivery_id = c.delivery_id
    ) past
  ), attempt AS (
    INSERT INTO webhook_attempts (delivery_id, number, webhook_id, at, outcome, lease_expires_at)
    SELECT delivery_id, number, $1, at, 'pending', now() + make_interval(secs => $5) FROM numbered
    ON CONFLICT (delivery_id, number) DO UPDATE SET lease_expires_at = excluded.lease_expires_at
    RETURNING delivery_id, number
  )
  SELECT w.url, w.status, w.failing_since,
    array_remove(ARRAY[w.secret_sealed], NULL) || ARRAY(
      SELECT s.secret_sealed FROM webhook_earlier_secrets s
      WHERE s.webhook_id = $1 AND s.expires_at > $3::timestamptz ORDER BY s.expires_at DESC, s.secret_id DESC
    ) AS secrets_sealed,
    EXISTS (
      SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'pending' AND endings < w.endings
    ) AS has_ended,
    found.*
  FROM webhooks w LEFT JOIN (
    SELECT c.delivery_id, c.event_id, c.generation, c.prior_attempts, a.number, e.body, c.traceparent, c.next_attempt_at
    FROM claimed c JOIN attempt a USING (delivery_id) JOIN events e USING (event_id)
  ) found ON true
  WHERE w.webhook_id = $1
  ORDER BY found.next_attempt_at, found.delivery_id`,
);

/**
 * Claims up to `limit` deliveries that are due, those that are due for longest first, and records that their attempts
 * begin. An attempt that an earlier run left pending is begun again, under its number.
 *
 * @param now decides what is due, and which earlier secrets still sign
 */
export async function claimDue(
  db: Queryable,
  webhookId: string,
  { run, now, limit }: { readonly run: number; readonly now: Date; readonly limit: number },
): Promise<{ readonly subscription: Subscription; readonly claimed: readonly ClaimedDelivery[] }> {
  const rows = await claim(db, webhookId, run, now.toISOString(), limit, LEASE_SECONDS);
  const [first] = rows;
  if (!first) throw new Error(`subscription ${webhookId} does not exist`);
  return {
    subscription: {
      url: first.url,
      status: first.status,
      failingSince: first.failing_since === null ? null : new Date(first.failing_since),
      secretsSealed: first.secrets_sealed,
      hasEnded: first.has_ended,
    },
    claimed: rows.flatMap((row) =>
      row.delivery_id === null
        ? []
        : [
            {
              deliveryId: row.delivery_id,
              eventId: row.event_id,
              generation: row.generation,
              number: row.number,
              attempt: row.number - row.prior_attempts,
              body: row.body,
              traceparent: row.traceparent,
            },
          ],
    ),
  };
}

/** The result of an attempt, as it is recorded. The digest is written as hex. */
export type AttemptResult = {
  readonly delivery_id: string;
  readonly generation: number;
  readonly number: number;
  readonly at: string;
  readonly outcome: 'succeeded' | 'failed';
  readonly response_status: number | null;
  readonly response_bytes: number | null;
  readonly response_sha256: string | null;
  readonly duration_ms: number;
  readonly error: string | null;
  /** Null after the last attempt. */
  readonly next_attempt_at: string | null;
};

/**
 * Where a delivery goes from an attempt `a` of it, by its own row `d` and its subscription's `w`. They are read from
 * the row that is updated, so that a redelivery that was asked for meanwhile is seen.
 */
const JUDGED_STATUS = `CASE
  -- An event that arrived while its subscription was disabled has arrived nevertheless.
  WHEN a.outcome = 'succeeded' AND w.deleted_at IS NULL THEN 'succeeded'
  WHEN w.deleted_at IS NOT NULL THEN 'canceled'
  WHEN w.status = 'disabled' OR d.endings < w.endings THEN 'skipped'
  WHEN a.next_attempt_at IS NULL AND NOT d.redelivery_requested THEN 'exhausted'
  ELSE 'pending' END`;
const IS_PENDING = `(${JUDGED_STATUS}) = 'pending'`;
/** A redelivery was asked for during the last attempt: the next attempt is the first one of a new generation. */
const BEGINS_AGAIN = `(${IS_PENDING} AND a.next_attempt_at IS NULL)`;

const record = statement<[webhookId: string, results: string], never>(
  'record_attempts',
  `WITH result AS (
    SELECT * FROM jsonb_to_recordset($2::jsonb) AS r (delivery_id text, generation integer, number integer,
      at timestamptz, outcome text, response_status integer, response_bytes integer, response_sha256 text,
      duration_ms integer, error text, next_attempt_at timestamptz)
  ), completed AS (
    UPDATE webhook_attempts a SET outcome = r.outcome, at = greatest(a.at, r.at), response_status = r.response_status,
      response_bytes = r.response_bytes, response_sha256 = decode(r.response_sha256, 'hex'),
      duration_ms = r.duration_ms, error = r.error
    FROM result r WHERE a.delivery_id = r.delivery_id AND a.number = r.number AND a.outcome = 'pending'
    RETURNING a.delivery_id, a.number, r.generation, r.outcome, r.next_attempt_at
  )
  UPDATE webhook_deliveries d SET claimed_by = 0, redelivery_requested = false, status = ${JUDGED_STATUS},
    next_attempt_at = CASE WHEN ${IS_PENDING}
      THEN CASE WHEN d.redelivery_requested THEN now() ELSE a.next_attempt_at END END,
    generation = d.generation + CASE WHEN ${BEGINS_AGAIN} THEN 1 ELSE 0 END,
    prior_attempts = CASE WHEN ${BEGINS_AGAIN} THEN a.number ELSE d.prior_attempts END,
    requested = d.requested OR ${BEGINS_AGAIN}
  FROM completed a, webhooks w
  WHERE d.delivery_id = a.delivery_id AND d.generation = a.generation AND w.webhook_id = $1
    AND (d.status = 'pending' OR a.outcome = 'succeeded')`,
);

/**
 * Completes attempts and moves their deliveries. What was completed before, by another run, stays as it is.
 *
 * @param results of one subscription; at most one of each delivery
 */
export async function recordResults(
  db: Queryable,
  webhookId: string,
  results: readonly AttemptResult[],
): Promise<void> {
  await record(db, webhookId, JSON.stringify(results));
}

const end = statement<[webhookId: string, limit: number], { ended: number }>(
  'end_deliveries',
  `WITH ended AS (
    UPDATE webhook_deliveries d SET status = CASE WHEN w.deleted_at IS NULL THEN 'skipped' ELSE 'canceled' END,
      next_attempt_at = NULL
    FROM webhooks w
    WHERE w.webhook_id = $1 AND d.delivery_id IN (
      SELECT delivery_id FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'pending'
        AND endings < (SELECT endings FROM webhooks WHERE webhook_id = $1)
      LIMIT $2 FOR UPDATE SKIP LOCKED
    )
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
  const [row] = await end(db, webhookId, ENDED_AT_ONCE);
  return row?.ended === ENDED_AT_ONCE;
}

/** What a run finds when it looks once more. */
export type Look = {
  /** Something is due, or is to be ended. */
  readonly hasWork: boolean;
  /** How many deliveries are pending, counted up to `PENDING_COUNT_MAX`. */
  readonly pending: number;
  readonly nextAttemptAt: Date | null;
  readonly status: WebhookStatus | 'deleted';
  readonly disabledReason: DisabledReason | null;
  readonly failingSince: Date | null;
};

type LookRow = {
  has_work: boolean;
  pending: number;
  next_attempt_at: string | null;
  status: Look['status'];
  disabled_reason: DisabledReason | null;
  failing_since: string | null;
};

const look = statement<[webhookId: string, now: string, countMax: number], LookRow>(
  'look_once_more',
  `WITH found AS MATERIALIZED (
    SELECT w.*, pending.*, EXISTS (
      SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'pending' AND endings < w.endings
    ) AS has_ended
    FROM (SELECT endings, failing_since, disabled_reason,
        CASE WHEN deleted_at IS NULL THEN status ELSE 'deleted' END AS status
      FROM webhooks WHERE webhook_id = $1) w,
    LATERAL (SELECT min(next_attempt_at) AS next_attempt_at FROM webhook_deliveries
      WHERE webhook_id = $1 AND status = 'pending' AND endings = w.endings) pending
  ), judged AS MATERIALIZED (
    SELECT found.*, has_ended OR coalesce(next_attempt_at <= ${dueText('$2')}, false) AS has_work FROM found
  ), cleared AS (
    UPDATE webhook_runs r SET running = false FROM judged WHERE r.webhook_id = $1 AND r.running AND NOT judged.has_work
  )
  SELECT has_work, next_attempt_at, status, disabled_reason, failing_since,
    CASE WHEN next_attempt_at IS NULL THEN 0 ELSE (
      SELECT count(*)::integer FROM (
        SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'pending' AND endings = judged.endings LIMIT $3
      ) counted
    ) END AS pending
  FROM judged`,
);

/**
 * The last look of a run: it clears `running`, unless there is something to do. The lock comes before the look in a
 * statement of its own, so that the look sees everything that was committed under a shared lock.
 *
 * @returns undefined while a transaction that writes a delivery is open: then the run stays a moment longer
 */
export async function lookOnceMore(tx: Tx, webhookId: string, now: Date): Promise<Look | undefined> {
  const { rowCount } = await tx.execute(
    sql`SELECT 1 FROM webhook_runs WHERE webhook_id = ${webhookId} FOR NO KEY UPDATE SKIP LOCKED`,
  );
  return rowCount === 1 ? await readWork(tx, webhookId, now) : undefined;
}

async function readWork(tx: Tx, webhookId: string, now: Date): Promise<Look> {
  const [row] = await look(tx, webhookId, now.toISOString(), PENDING_COUNT_MAX);
  if (!row) throw new Error(`subscription ${webhookId} does not exist`);
  return {
    hasWork: row.has_work,
    pending: row.pending,
    nextAttemptAt: row.next_attempt_at === null ? null : new Date(row.next_attempt_at),
    status: row.status,
    disabledReason: row.disabled_reason,
    failingSince: row.failing_since === null ? null : new Date(row.failing_since),
  };
}

const listDue = statement<[webhookIds: readonly string[], runs: readonly number[]], { webhook_id: string }>(
  'list_subscriptions_with_work',
  `SELECT w.webhook_id FROM unnest($1::text[], $2::bigint[]) AS watched (webhook_id, run)
    JOIN webhooks w ON w.webhook_id = watched.webhook_id
  WHERE EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.webhook_id AND d.status = 'pending'
      AND d.endings = w.endings AND d.next_attempt_at <= now() AND d.claimed_by < watched.run)
    OR EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.webhook_id AND d.status = 'pending'
      AND d.endings < w.endings)`,
);

/**
 * Which of these subscriptions have something to do, on the database's clock.
 *
 * @param watched the number of the run that asks, by subscription
 */
export async function listSubscriptionsWithWork(
  db: Queryable,
  watched: ReadonlyMap<string, number>,
): Promise<readonly string[]> {
  const rows = await listDue(db, [...watched.keys()], [...watched.values()]);
  return rows.map(({ webhook_id }) => webhook_id);
}
