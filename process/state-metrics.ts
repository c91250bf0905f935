/**
 * The service's state as gauges, read from PostgreSQL: one statement for all of them, asked at most once in a few
 * seconds whoever scrapes. The API tells them: it is what is still there when the workers are the trouble.
 */
import { Gauge, type Registry } from 'prom-client';
import type { Database } from '../db/client.ts';
import { countStates, type StateCounts } from '../db/queries/metric.ts';
import { OUTBOX_KINDS } from '../domain/outbox.ts';
import { OPEN_STATUSES, TERMINAL_STATUSES } from '../domain/settlement.ts';
import { DELIVERY_STATUSES } from '../domain/webhook.ts';
import type { Exposition } from './metrics.ts';

const CACHE_MS = 5_000;

export type StateMetricsDeps = {
  readonly db: Database;
  readonly now: () => Date;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

/**
 * Adds the gauges to a registry. When PostgreSQL cannot be read they are absent and `settlement_database_up` is 0:
 * an old number would be taken for a true one.
 */
export function stateExposition(registry: Registry, { db, now, log }: StateMetricsDeps): Exposition {
  const registers = [registry];
  const up = new Gauge({
    name: 'settlement_database_up',
    help: 'Whether PostgreSQL answered the last time it was asked',
    registers,
  });
  const gauges = stateGauges(registry);
  let asked: { readonly atMs: number; readonly answer: Promise<StateCounts> } | undefined;
  return async () => {
    // A failure is kept for as long as an answer: a database in trouble is not asked at each scrape either.
    if (!asked || now().getTime() - asked.atMs >= CACHE_MS)
      asked = { atMs: now().getTime(), answer: countStates(db, now()) };
    try {
      const counts = await asked.answer;
      gauges.set(counts);
      up.set(1);
    } catch (error) {
      log.warn({ err: error }, 'the state of the service could not be counted');
      gauges.clear();
      up.set(0);
    }
    return await registry.metrics();
  };
}

function stateGauges(registry: Registry) {
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const open = gauge('settlement_open', 'Settlements that are not at an end', 'state');
  const oldest = gauge(
    'settlement_oldest_open_seconds',
    'How long the longest-standing settlement has been in the state',
    'state',
  );
  const overdue = gauge(
    'settlement_overdue',
    'Settlements whose wait is over and was not ended within five minutes',
    'state',
  );
  const finished = gauge(
    'settlement_finished_last_hour',
    'Settlements that came to this end within the last hour',
    'state',
  );
  const rows = gauge('settlement_outbox_rows', 'What has not reached Temporal yet', 'kind');
  const age = gauge('settlement_outbox_oldest_seconds', 'How long the oldest outbox row has waited', 'kind');
  const deliveries = gauge(
    'settlement_deliveries',
    'Deliveries that are pending, or were made within the last day',
    'status',
  );
  const late = gauge('settlement_deliveries_overdue', 'Pending deliveries whose next attempt is five minutes late');
  return {
    set: (counts: StateCounts): void => {
      for (const state of OPEN_STATUSES) {
        const found = counts.open.find(({ status }) => status === state);
        open.set({ state }, found?.count ?? 0);
        oldest.set({ state }, found?.oldestSeconds ?? 0);
        overdue.set({ state }, found?.overdue ?? 0);
      }
      for (const state of TERMINAL_STATUSES)
        finished.set({ state }, counts.finishedLastHour.find(({ status }) => status === state)?.count ?? 0);
      for (const kind of OUTBOX_KINDS) {
        const found = counts.outbox.find((row) => row.kind === kind);
        rows.set({ kind }, found?.count ?? 0);
        age.set({ kind }, found?.oldestSeconds ?? 0);
      }
      for (const status of DELIVERY_STATUSES)
        deliveries.set({ status }, counts.deliveriesLastDay.find((row) => row.status === status)?.count ?? 0);
      late.set(counts.deliveriesOverdue);
    },
    clear: (): void => {
      for (const each of [open, oldest, overdue, finished, rows, age, deliveries]) each.reset();
      late.remove();
    },
  };
}
