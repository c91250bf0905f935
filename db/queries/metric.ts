/** The service's state in numbers: one statement. It reads, by index, what is open and what is recent. */
import { type SQL, sql } from 'drizzle-orm';
import { expiringEvidence, type GateEvidence } from '../../domain/gate.ts';
import type { OutboxKind, SweptKind } from '../../domain/outbox.ts';
import type { RetentionDays } from '../../domain/retention.ts';
import { environmentName, type RuntimeEnvironment } from '../../domain/runtime.ts';
import { EVIDENCE_STATUSES, type SettlementStatus, TERMINAL_STATUSES } from '../../domain/settlement/state.ts';
import { type DeliveryStatus, IN_FLIGHT, WAITS_MAX_MS } from '../../domain/webhook.ts';
import type { Aggregated } from '../aggregated.ts';
import type { Queryable } from '../client.ts';
import { evidenceOf, gateEvidenceJson } from './gate.ts';
import { hasRefundDue, refundDueSince } from './refund.ts';
import { isOpenSettlement, settlementsWithEntry } from './settlement.ts';

export type StateCounts = {
  /**
   * Settlements that have not ended. `oldestSeconds`: since the oldest of them entered the state. `overdue`: those
   * whose wait is over, or whose money has come.
   */
  readonly open: readonly {
    readonly status: SettlementStatus;
    readonly count: number;
    readonly oldestSeconds: number;
    readonly overdue: number;
  }[];
  readonly finishedLately: readonly { readonly status: SettlementStatus; readonly count: number }[];
  readonly outbox: readonly { readonly kind: OutboxKind; readonly count: number; readonly oldestSeconds: number }[];
  /** Pending ones, and those that have ended lately. */
  readonly deliveries: readonly { readonly status: DeliveryStatus; readonly count: number }[];
  /** Deliveries past their time that no lane took, and that do not wait for their endpoint. */
  readonly deliveriesOverdue: number;
  readonly refundsDue: number;
  /** Since money of the oldest of them is due. */
  readonly refundOldestSeconds: number;
  /** Approved evidence that decides a launch gate of this environment, and expires soon or has expired. */
  readonly evidenceExpiring: number;
  /** Organizations whose last key of scope full expires soon. */
  readonly keysExpiring: number;
  /** For how many days every table that lies in months has a partition. */
  readonly partitionDaysAhead: number;
  /** For how many days something has been kept for longer than its time. */
  readonly retentionOverdueDays: number;
  readonly isWritable: boolean;
  /** How many runs were restarted in total, and how long ago the last sweep for lost runs was. */
  readonly sweeps: readonly { readonly kind: SweptKind; readonly restarted: number; readonly ageSeconds: number }[];
};

/** A wait that should have ended longer ago than this is stuck: timers and retries take less. */
export const OVERDUE_GRACE_MS = 5 * 60_000;
const HOUR_MS = 60 * 60_000;
/** Each one that ended is counted at each scrape: at a hundred settlements a second these are 30 000. */
const FINISHED_MS = 5 * 60_000;
/** Operators need this long to renew evidence, or a partner its key. */
const EXPIRY_MS = 14 * 24 * HOUR_MS;

/**
 * Pending ones are counted whenever they were created, and exhausted ones for a day after their last attempt at least:
 * that is more than a day after their creation. Those that succeeded are too many to be counted.
 */
export const COUNTED_STATUSES = ['pending', 'exhausted', 'skipped', 'canceled'] as const satisfies DeliveryStatus[];
const EXHAUSTED_MS = WAITS_MAX_MS + 24 * HOUR_MS;

/**
 * Whether the wait of a settlement should have ended: its time is over, its money has come, or other evidence decides,
 * and nothing has followed. When Temporal fails over, it may lose the signal about the evidence. The run would then wait
 * for days, and in review without end.
 *
 * @param ownNow the time on the settlement's own clock
 */
export function isOverdue(ownNow: SQL): SQL {
  const latest = sql`${ownNow} - ${OVERDUE_GRACE_MS} * interval '1 millisecond'`;
  return sql`(coalesce(expires_at < ${latest}, false)
    OR (updated_at < ${latest} AND (status = 'awaiting_funds' AND amount_received_minor >= amount_minor
      OR status IN (${listOf(EVIDENCE_STATUSES)})
        AND EXISTS (SELECT 1 FROM evidence e WHERE e.settlement_id = settlements.settlement_id AND e.pending))))`;
}

/**
 * Whether a settlement that has ended did so lately, on its own clock. `updated_at` does not say it: a refund or a
 * dispute comes later. For a settlement that was created lately, the history is not read.
 */
const hasEndedLately = (now: Date, ownNow: SQL): SQL => sql`(
  created_at > ${new Date(now.getTime() - FINISHED_MS).toISOString()} OR (
  SELECT t.at FROM settlement_transitions t
  WHERE t.settlement_id = settlements.settlement_id AND t.to_status = settlements.status LIMIT 1
) > ${ownNow} - ${FINISHED_MS} * interval '1 millisecond')`;

const listOf = (statuses: readonly string[]) =>
  sql.join(
    statuses.map((status) => sql`${status}`),
    sql`, `,
  );

/** Whether a delivery was due before this time, and no lane has taken it. The status is a literal, for a partial index. */
export const isUntaken = (due: string): SQL =>
  sql`webhook_deliveries.status = 'pending' AND webhook_deliveries.next_attempt_at < ${due}
    AND webhook_deliveries.lane_key IS NOT NULL AND webhook_deliveries.claimed_by = 0`;

/**
 * The subscriptions with deliveries that were due before this time and that no lane has taken, and how many. They are
 * not those of an endpoint that fails, or that has requests under way: such deliveries wait for the endpoint. A lane
 * takes what has been due for longest, so what it has taken is among the first.
 */
export const untaken = (due: string): SQL => sql`
  SELECT late.webhook_id, late.count FROM (
    SELECT lane_key, org_id, webhook_id, count(*)::int AS count FROM webhook_deliveries WHERE ${isUntaken(due)}
    GROUP BY lane_key, org_id, webhook_id
  ) late
  WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.webhook_id = late.webhook_id AND w.failing_since IS NULL)
    AND NOT EXISTS (
      SELECT 1 FROM (
        SELECT claimed_at FROM webhook_deliveries d
        WHERE d.lane_key = late.lane_key AND d.org_id = late.org_id AND d.webhook_id = late.webhook_id
        ORDER BY next_attempt_at, delivery_id LIMIT ${sql.raw(String(IN_FLIGHT.most))}
      ) first WHERE claimed_at > now() - ${OVERDUE_GRACE_MS} * interval '1 millisecond'
    )`;

/** Whether a key is of scope full and expires soon, and its organization has none that stays. */
export function isExpiringLastKey(now: Date): SQL {
  const soon = new Date(now.getTime() + EXPIRY_MS).toISOString();
  return sql`api_keys.status = 'active' AND api_keys.scope = 'full'
    AND api_keys.expires_at BETWEEN ${now.toISOString()} AND ${soon} AND NOT EXISTS (
      SELECT 1 FROM api_keys later WHERE later.org_id = api_keys.org_id AND later.status = 'active'
        AND later.scope = 'full' AND coalesce(later.expires_at > ${soon}, true))`;
}

/** What the counts depend on. Evidence is counted for the environment of `runtime` alone. */
type StateQuestion = {
  readonly runtime: RuntimeEnvironment;
  readonly now: Date;
  readonly retentionDays: RetentionDays;
};

/** Waits are compared on each settlement's own clock, outbox rows on the database's clock. */
export async function countStates(db: Queryable, question: StateQuestion): Promise<StateCounts> {
  const { runtime, now } = question;
  const { events, quotes } = question.retentionDays;
  const ago = (ms: number) => new Date(now.getTime() - ms).toISOString();
  const ownNow = sql`(${now.toISOString()}::timestamptz + clock_offset_ms * interval '1 millisecond')`;
  const { rows } = await db.execute<
    Omit<StateCounts, 'evidenceExpiring'> & { readonly evidence: readonly Aggregated<GateEvidence>[] }
  >(sql`
    SELECT
      (SELECT coalesce(json_agg(s), '[]') FROM (
        SELECT status, count(*)::int AS count,
          greatest(0, extract(epoch FROM max(${ownNow} - entered_at)))::float8 AS "oldestSeconds",
          (count(*) FILTER (WHERE ${isOverdue(ownNow)}))::int AS overdue
        FROM ${settlementsWithEntry} WHERE ${isOpenSettlement} GROUP BY status) s) AS open,
      (SELECT coalesce(json_agg(s), '[]') FROM (
        SELECT status, count(*)::int AS count FROM settlements
        WHERE status IN (${listOf(TERMINAL_STATUSES)}) AND updated_at > ${ago(FINISHED_MS)}
          AND ${hasEndedLately(now, ownNow)}
        GROUP BY status) s) AS "finishedLately",
      (SELECT coalesce(json_agg(o), '[]') FROM (
        SELECT kind, count(*)::int AS count,
          greatest(0, extract(epoch FROM now() - min(created_at)))::float8 AS "oldestSeconds"
        FROM outbox GROUP BY kind) o) AS outbox,
      (SELECT coalesce(json_agg(d), '[]') FROM (
        SELECT status, count(*)::int AS count FROM webhook_deliveries
        WHERE status = 'pending' GROUP BY status
        UNION ALL
        SELECT status, count(*)::int FROM webhook_deliveries
        WHERE status IN ('skipped', 'canceled') AND created_at > ${ago(24 * HOUR_MS)} GROUP BY status
        UNION ALL
        SELECT status, count(*)::int FROM webhook_deliveries
        WHERE status = 'exhausted' AND created_at > ${ago(EXHAUSTED_MS)} GROUP BY status
      ) d) AS deliveries,
      (SELECT coalesce(sum(count), 0)::int FROM (${untaken(ago(OVERDUE_GRACE_MS))}) u) AS "deliveriesOverdue",
      (SELECT count(*)::int FROM settlements WHERE ${hasRefundDue}) AS "refundsDue",
      (SELECT coalesce(greatest(0, extract(epoch FROM max(${ownNow} - ${refundDueSince}))), 0)::float8
        FROM settlements WHERE ${hasRefundDue}) AS "refundOldestSeconds",
      ${sql.raw(gateEvidenceJson(`e.environment = '${environmentName(runtime)}'`))} AS evidence,
      (SELECT count(DISTINCT org_id)::int FROM api_keys WHERE ${isExpiringLastKey(now)}) AS "keysExpiring",
      (SELECT extract(epoch FROM min(ends_at) - now())::float8 / 86400 FROM (
        SELECT max(to_at) AS ends_at FROM partitions() GROUP BY table_name) months) AS "partitionDaysAhead",
      (SELECT greatest(0, extract(epoch FROM max(now() - ended_at - days * interval '24 hours')) / 86400)::float8 FROM (
        SELECT to_at + interval '1 hour' AS ended_at, CASE table_name WHEN 'quotes' THEN ${quotes}::int ELSE ${events}::int END AS days
        FROM partitions()
        UNION ALL SELECT time_of_id(min(delivery_id)), ${events}::int FROM webhook_deliveries
      ) kept) AS "retentionOverdueDays",
      NOT current_setting('transaction_read_only')::boolean AS "isWritable",
      (SELECT coalesce(json_agg(w), '[]') FROM (
        SELECT kind, restarted, greatest(0, extract(epoch FROM now() - finished_at))::float8 AS "ageSeconds"
        FROM sweeps) w) AS sweeps`);
  const [counts] = rows;
  if (!counts) throw new Error('a SELECT without FROM answered no row');
  const { evidence, ...read } = counts;
  return { ...read, evidenceExpiring: expiringEvidence(evidenceOf(evidence), now, EXPIRY_MS).length };
}
