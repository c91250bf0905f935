/**
 * The service's state as gauges, read from PostgreSQL: one statement for all gauges, at most once every five seconds.
 * The API exposes them, since it still runs when the workers have failed.
 */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Database } from '../db/client.ts';
import { COUNTED_STATUSES, countStates, type StateCounts } from '../db/queries/metric.ts';
import { OUTBOX_KINDS } from '../domain/outbox.ts';
import type { RetentionDays } from '../domain/retention.ts';
import type { RuntimeEnvironment } from '../domain/runtime.ts';
import { OPEN_STATUSES, TERMINAL_STATUSES } from '../domain/settlement/state.ts';
import type { Exposition } from './metrics.ts';

const CACHE_MS = 5_000;

export type StateMetricsDeps = {
  readonly db: Database;
  /** Evidence of its environment alone is counted. */
  readonly runtime: RuntimeEnvironment;
  readonly config: {
    /** Beyond this many rows of the outbox, new commands are refused. */
    readonly outboxMaxRows: number;
    readonly retentionDays: RetentionDays;
  };
  readonly now: () => Date;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

/**
 * Adds the gauges to a registry. When PostgreSQL cannot be read, they are absent and `settlement_database_up` is 0: a
 * stale number would look like a current one.
 */
export function stateExposition(registry: Registry, { db, runtime, config, now, log }: StateMetricsDeps): Exposition {
  const registers = [registry];
  const up = new Gauge({
    name: 'settlement_database_up',
    help: 'Whether PostgreSQL answers, and takes writes',
    registers,
  });
  const limit = new Gauge({
    name: 'settlement_outbox_rows_limit',
    help: 'Beyond this many rows of the outbox, new commands are refused',
    registers,
  });
  limit.set(config.outboxMaxRows);
  const parts = [stateGauges(registry), sweepMetrics(registry)];
  let latest: { readonly atMs: number; readonly counts: Promise<StateCounts> } | undefined;
  return async () => {
    // A failed read is cached too: a database that has failed is not read at every scrape.
    // By the difference in either direction: the clock may have been set back.
    if (!latest || Math.abs(now().getTime() - latest.atMs) >= CACHE_MS)
      latest = {
        atMs: now().getTime(),
        counts: countStates(db, { runtime, now: now(), retentionDays: config.retentionDays }),
      };
    try {
      const counts = await latest.counts;
      for (const { set } of parts) set(counts);
      up.set(counts.isWritable ? 1 : 0);
    } catch (error) {
      log.warn({ err: error }, 'the state of the service could not be read');
      for (const { clear } of parts) clear();
      up.set(0);
    }
    return await registry.metrics();
  };
}

function stateGauges(registry: Registry) {
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const open = gauge('settlement_open', 'Settlements that have not ended', 'state');
  const oldest = gauge(
    'settlement_oldest_open_seconds',
    'How long the oldest settlement has been in the state',
    'state',
  );
  const overdue = gauge(
    'settlement_overdue',
    'Settlements still waiting five minutes after the end of their wait, or after evidence came that ends it',
    'state',
  );
  const finished = gauge(
    'settlement_finished_last_five_minutes',
    'Settlements that ended in this state within the last five minutes',
    'state',
  );
  const rows = gauge('settlement_outbox_rows', 'Outbox rows that have not reached Temporal yet', 'kind');
  const age = gauge('settlement_outbox_oldest_seconds', 'How long the oldest outbox row has waited', 'kind');
  const deliveries = gauge(
    'settlement_deliveries',
    'Pending deliveries, and those skipped or canceled of the last day; exhausted ones of 79 hours',
    'status',
  );
  const refunds = gauge('settlement_refunds_due', 'Settlements with money that is due back to the payer');
  const oldestRefund = gauge(
    'settlement_refund_oldest_seconds',
    'For how long money of the oldest of them has been due',
  );
  const evidence = gauge(
    'settlement_gate_evidence_expiring',
    'Approved evidence that decides a launch gate and expires within 14 days, or has',
  );
  const keys = gauge('settlement_keys_expiring', 'Organizations whose last key of scope full expires within 14 days');
  const late = gauge(
    'settlement_deliveries_overdue',
    'Pending deliveries that no lane has taken for more than five minutes, and that do not wait for their endpoint',
  );
  const ahead = gauge('settlement_partition_days_ahead', 'For how many days there are partitions for new rows');
  const kept = gauge(
    'settlement_retention_overdue_days',
    'For how many days something has been kept for longer than its retention',
  );
  return {
    set: (counts: StateCounts): void => {
      for (const state of OPEN_STATUSES) {
        const found = counts.open.find(({ status }) => status === state);
        open.set({ state }, found?.count ?? 0);
        oldest.set({ state }, found?.oldestSeconds ?? 0);
        overdue.set({ state }, found?.overdue ?? 0);
      }
      for (const state of TERMINAL_STATUSES)
        finished.set({ state }, counts.finishedLately.find(({ status }) => status === state)?.count ?? 0);
      // Also kinds that only a later version knows: after a rollback, nobody sends such rows.
      for (const each of [rows, age]) each.reset();
      for (const kind of new Set([...OUTBOX_KINDS, ...counts.outbox.map((row) => row.kind)])) {
        const found = counts.outbox.find((row) => row.kind === kind);
        rows.set({ kind }, found?.count ?? 0);
        age.set({ kind }, found?.oldestSeconds ?? 0);
      }
      for (const status of COUNTED_STATUSES)
        deliveries.set({ status }, counts.deliveries.find((row) => row.status === status)?.count ?? 0);
      late.set(counts.deliveriesOverdue);
      refunds.set(counts.refundsDue);
      oldestRefund.set(counts.refundOldestSeconds);
      evidence.set(counts.evidenceExpiring);
      keys.set(counts.keysExpiring);
      ahead.set(counts.partitionDaysAhead);
      kept.set(counts.retentionOverdueDays);
    },
    clear: (): void => {
      for (const each of [open, oldest, overdue, finished, rows, age, deliveries]) each.reset();
      for (const each of [late, refunds, oldestRefund, evidence, keys, ahead, kept]) each.remove();
    },
  };
}

function sweepMetrics(registry: Registry) {
  const labelNames = ['kind'];
  const registers = [registry];
  const restarted = new Counter({
    name: 'settlement_runs_restarted_total',
    help: 'Workflows of open objects that had no run and were started again',
    labelNames,
    registers,
  });
  const age = new Gauge({
    name: 'settlement_sweep_age_seconds',
    help: 'How long ago the last sweep for lost runs was',
    labelNames,
    registers,
  });
  const clear = (): void => {
    restarted.reset();
    age.reset();
  };
  return {
    set: ({ sweeps }: StateCounts): void => {
      clear();
      for (const { kind, ...sweep } of sweeps) {
        restarted.inc({ kind }, sweep.restarted);
        age.set({ kind }, sweep.ageSeconds);
      }
    },
    clear,
  };
}
