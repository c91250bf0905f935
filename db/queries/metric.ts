/** The service's state in numbers: one statement. It reads, by index, what is open and what is recent. */
import { type SQL, sql } from 'drizzle-orm';
import type { OutboxKind, SweptKind } from '../../domain/outbox.ts';
import { OPEN_STATUSES, type SettlementStatus, TERMINAL_STATUSES } from '../../domain/settlement/state.ts';
import type { DeliveryStatus } from '../../domain/webhook.ts';
import type { Queryable } from '../client.ts';

export type StateCounts = {
  /**
   * Settlements that have not ended. `oldestSeconds`: since the oldest of them entered the state. `overdue`: those
   * whose wait is over.
   */
  readonly open: readonly {
    readonly status: SettlementStatus;
    readonly count: number;
    readonly oldestSeconds: number;
    readonly overdue: number;
  }[];
  readonly finishedLastHour: readonly { readonly status: SettlementStatus; readonly count: number }[];
  readonly outbox: readonly { readonly kind: OutboxKind; readonly count: number; readonly oldestSeconds: number }[];
  readonly deliveriesLastDay: readonly { readonly status: DeliveryStatus; readonly count: number }[];
  /** Deliveries past their time that no lane took; without those of endpoints that fail, which delay them. */
  readonly deliveriesOverdue: number;
  /** How many runs were restarted in total, and how long ago the last sweep for lost runs was. */
  readonly sweeps: readonly { readonly kind: SweptKind; readonly restarted: number; readonly ageSeconds: number }[];
};

/** A wait that should have ended longer ago than this is stuck: timers and retries take less. */
export const OVERDUE_GRACE_MS = 5 * 60_000;
const HOUR_MS = 60 * 60_000;

const listOf = (statuses: readonly string[]) =>
  sql.join(
    statuses.map((status) => sql`${status}`),
    sql`, `,
  );

/** Whether a delivery waits for a lane, and not for its endpoint, which fails. */
export const isUntaken: SQL = sql`webhook_deliveries.lane_key IS NOT NULL AND webhook_deliveries.claimed_by = 0
  AND EXISTS (SELECT 1 FROM webhooks w WHERE w.webhook_id = webhook_deliveries.webhook_id AND w.failing_since IS NULL)`;

/** Waits are compared on each settlement's own clock, outbox rows on the database's clock. */
export async function countStates(db: Queryable, now: Date): Promise<StateCounts> {
  const ago = (ms: number) => new Date(now.getTime() - ms).toISOString();
  const ownNow = sql`(${now.toISOString()}::timestamptz + clock_offset_ms * interval '1 millisecond')`;
  const { rows } = await db.execute<StateCounts>(sql`
    SELECT
      (SELECT coalesce(json_agg(s), '[]') FROM (
        SELECT status, count(*)::int AS count,
          greatest(0, extract(epoch FROM max(${ownNow} - updated_at)))::float8 AS "oldestSeconds",
          (count(*) FILTER (
            WHERE expires_at < ${ownNow} - ${OVERDUE_GRACE_MS} * interval '1 millisecond'
          ))::int AS overdue
        FROM settlements WHERE status IN (${listOf(OPEN_STATUSES)}) GROUP BY status) s) AS open,
      (SELECT coalesce(json_agg(s), '[]') FROM (
        SELECT status, count(*)::int AS count FROM settlements
        WHERE status IN (${listOf(TERMINAL_STATUSES)}) AND updated_at > ${ago(HOUR_MS)}
        GROUP BY status) s) AS "finishedLastHour",
      (SELECT coalesce(json_agg(o), '[]') FROM (
        SELECT kind, count(*)::int AS count,
          greatest(0, extract(epoch FROM now() - min(created_at)))::float8 AS "oldestSeconds"
        FROM outbox GROUP BY kind) o) AS outbox,
      (SELECT coalesce(json_agg(d), '[]') FROM (
        SELECT status, count(*)::int AS count FROM webhook_deliveries
        WHERE status = 'pending' OR created_at > ${ago(24 * HOUR_MS)} GROUP BY status) d) AS "deliveriesLastDay",
      (SELECT count(*)::int FROM webhook_deliveries
        WHERE status = 'pending' AND next_attempt_at < ${ago(OVERDUE_GRACE_MS)}
          AND ${isUntaken}) AS "deliveriesOverdue",
      (SELECT coalesce(json_agg(w), '[]') FROM (
        SELECT kind, restarted, greatest(0, extract(epoch FROM now() - finished_at))::float8 AS "ageSeconds"
        FROM sweeps) w) AS sweeps`);
  const [counts] = rows;
  if (!counts) throw new Error('a SELECT without FROM answered no row');
  return counts;
}
