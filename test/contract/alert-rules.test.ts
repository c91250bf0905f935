/**
 * Each alert of `docs/alerts.yaml` by promtool: it fires on its condition and says what the operator reads, not before
 * its time, and none fires while the service is well. promtool comes from Debian's package; where neither it nor apt
 * exists, these tests do not run.
 */
import { rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { repositoryRoot } from '../../process/local/place.ts';
import { findPrometheus } from '../support/prometheus.ts';
import { readSource } from '../support/source.ts';

const RULES = path.join(repositoryRoot, 'docs/alerts.yaml');
const ALL: { alert?: string; labels?: { severity: string } }[] = parse(readSource('docs/alerts.yaml')).groups.flatMap(
  ({ rules }: { rules: [] }) => rules,
);
const ALERTS = ALL.flatMap(({ alert, labels }) => (alert && labels ? [{ alert, severity: labels.severity }] : []));
const programs = await findPrometheus();

/**
 * `quiet`: not yet at this time, by default a minute; it `fires` at two. `labels` in addition to the severity. Series
 * have a sample a minute.
 */
type Case = {
  readonly series: Readonly<Record<string, string>>;
  readonly quiet?: string;
  readonly fires?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly summary: string;
};
const PROCESS = { instance: 'worker:9465', job: 'settlement-worker' };
const between = (quiet: string, fires: string) => ({ quiet, fires });
const of = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');
const LATENCY = 'settlement_http_request_duration_seconds';
const PROVIDER = '/v2/webhooks/cardproc';
const STARTED = 'process_start_time_seconds';
/** By two processes, and for two reasons. */
const REFUSED_IN_PARTS = {
  [`${LATENCY}_count{route="${PROVIDER}",status="409",instance="one"}`]: '_ _ 3x20',
  [`${LATENCY}_count{route="${PROVIDER}",status="422",instance="two"}`]: '_ _ 3x20',
  [`${STARTED}{instance="one"}`]: '0x20',
  [`${STARTED}{instance="two"}`]: '0x20',
};
/** The first error, of a process that has just started and of one that Prometheus has read for long. */
const FIRST = { young: '_ _ 1x20', old: '_x20 1x20' } as const;
const READ_FOR_LONG = { up: '1x50', [STARTED]: '-86400x50' };
const slots = (task_queue: string) =>
  `temporal_worker_task_slots_available{${of({ instance: 'w', task_queue, worker_type: 'ActivityWorker' })}}`;
const SCHEDULE = 'temporal_workflow_task_schedule_to_start_latency_seconds_bucket';
const FAILED_TASKS = 'temporal_workflow_task_execution_failed_total';
const slo = (result: 'good' | 'bad') => `settlement_slo_total{slo="accept",runtime="remote",result="${result}"}`;
const OF_SLO = { slo: 'accept', runtime: 'remote' };

const CASES: Readonly<Record<string, Case>> = {
  ApiDown: {
    series: { 'up{job="settlement-api",instance="api:9464"}': '1 0x20' },
    labels: { job: 'settlement-api', instance: 'api:9464' },
    summary: 'An API process does not answer, or none is known',
  },
  WorkerDown: {
    series: { [`up{${of(PROCESS)}}`]: '1 0x20' },
    labels: PROCESS,
    summary: 'A worker does not answer, or none is known; accepted settlements wait',
  },
  DatabaseDown: { series: { settlement_database_up: '1 0x20' }, summary: 'PostgreSQL cannot be read or written' },
  TemporalDown: {
    series: { [`settlement_temporal_up{${of(PROCESS)}}`]: '1 0x20' },
    labels: PROCESS,
    summary: 'Temporal cannot be used by worker:9465; accepted settlements wait',
  },
  ClockOff: {
    series: { [`settlement_clock_offset_seconds{${of(PROCESS)}}`]: '0 -3x20' },
    labels: PROCESS,
    summary: "The clock of worker:9465 is 3 s away from PostgreSQL's",
  },
  OutboxStuck: {
    series: { 'settlement_outbox_oldest_seconds{kind="settlement"}': '0 30 90x20' },
    ...between('2m', '3m'),
    labels: { kind: 'settlement' },
    summary: 'An outbox row of kind settlement is older than a minute',
  },
  OutboxGrows: {
    series: {
      'settlement_outbox_rows{kind="settlement"}': '0 15x20',
      'settlement_outbox_rows{kind="otp"}': '0 6x20',
      settlement_outbox_rows_limit: '200x20',
    },
    summary: '21 outbox rows wait; beyond OUTBOX_MAX_ROWS, new commands are refused',
  },
  WorkflowTasksFail: {
    series: { [`${FAILED_TASKS}{workflow_type="settlement"}`]: '0 0 1x20' },
    labels: { workflow_type: 'settlement' },
    summary: 'Workflow tasks of settlement fail; the code may not replay older runs',
  },
  SettlementsStandStill: {
    series: {
      'settlement_oldest_open_seconds{state="accepted"}': '0+60x20',
      'settlement_oldest_open_seconds{state="awaiting_funds"}': '9000x20',
    },
    ...between('6m', '7m'),
    labels: { state: 'accepted' },
    summary: 'A settlement has been accepted for five minutes; it should move at once',
  },
  WaitsNotEnded: {
    series: { 'settlement_overdue{state="awaiting_funds"}': '0 1x20' },
    ...between('5m', '6m'),
    labels: { state: 'awaiting_funds' },
    summary: 'A wait in awaiting_funds is over, but the settlement has not moved',
  },
  RunsLost: {
    series: { 'settlement_runs_restarted_total{kind="settlement"}': '4 4 5x20' },
    labels: { kind: 'settlement' },
    summary: 'Workflows of kind settlement had no run and were started again',
  },
  SweepStopped: {
    series: { 'settlement_sweep_age_seconds{kind="settlement"}': '0+60x20' },
    ...between('3m', '4m'),
    summary: 'Nobody looks for lost runs',
  },
  PayoutsFail: {
    series: { settlement_payout_call_failures_total: '0 0 1x20' },
    summary: 'Calls to the payout rail fail; those settlements stay in paying_out',
  },
  ActivitiesFail: {
    series: { 'settlement_activity_failures_total{activity="admitSettlement"}': '0 0 1x20' },
    labels: { activity: 'admitSettlement' },
    summary: 'The activity admitSettlement fails and is repeated',
  },
  ReviewWaits: {
    series: { 'settlement_open{state="needs_review"}': '0 2x30' },
    ...between('15m', '16m'),
    summary: '2 payouts with an unknown outcome wait for an operator',
  },
  ReviewForgotten: {
    series: { 'settlement_oldest_open_seconds{state="needs_review"}': '86300+60x20' },
    summary: 'A payout with an unknown outcome has waited for an operator for a day',
  },
  RefundsDue: {
    series: { settlement_refund_oldest_seconds: '86300+60x20' },
    summary: 'Money has been due back to a payer for a day',
  },
  EvidenceExpires: {
    series: { settlement_gate_evidence_expiring: '0 0 2x20' },
    summary: '2 approved evidences of launch gates expire within 14 days, or have',
  },
  KeysExpire: {
    series: { settlement_keys_expiring: '0 0 2x20' },
    summary: '2 organizations lose their last full key within 14 days',
  },
  MonthsMissing: {
    series: { settlement_partition_days_ahead: '93 44x20' },
    ...between('10m', '12m'),
    summary: 'New events have a partition for 44 days only',
  },
  RetentionLate: {
    series: { settlement_retention_overdue_days: '0 3x20' },
    ...between('10m', '12m'),
    summary: 'Something has been kept for 3 days longer than configured',
  },
  GateRefusals: {
    series: { 'settlement_http_refusals_total{code="launch_gates_closed"}': '0 0 1x20' },
    summary: 'Closed launch gates refuse value operations',
  },
  DeliveriesLate: {
    series: { settlement_deliveries_overdue: '0 3x20' },
    ...between('5m', '6m'),
    summary: '3 deliveries are late',
  },
  DeliveriesExhausted: {
    series: { 'settlement_deliveries{status="exhausted"}': '0 0 1x20' },
    summary: '1 deliveries of the last days are exhausted',
  },
  RequestsFail: {
    series: { [`${LATENCY}_count{route="/v2/settle",method="POST",status="500"}`]: '0 0 1x20' },
    labels: { route: '/v2/settle' },
    summary: '/v2/settle failed unexpectedly',
  },
  ProviderEventsRefused: {
    series: { [`${LATENCY}_count{route="${PROVIDER}",method="POST",status="401"}`]: '0 0 10x20' },
    labels: { route: PROVIDER },
    summary: `${PROVIDER} refuses what the provider sends: its money or its decisions do not count`,
  },
  RequestsUnavailable: {
    series: { 'settlement_http_refusals_total{code="temporarily_unavailable"}': '0+60x20' },
    ...between('5m', '7m'),
    summary: 'Requests get 503: database down or process overloaded',
  },
  AnswersSlow: {
    series: {
      [`${LATENCY}_bucket{method="POST",le="1"}`]: '0+10x30',
      [`${LATENCY}_bucket{method="POST",le="2.5"}`]: '0+20x30',
      [`${LATENCY}_bucket{method="POST",le="+Inf"}`]: '0+20x30',
    },
    ...between('10m', '12m'),
    summary: '1 % of the POST requests take more than a second',
  },
  PoolExhausted: {
    series: { [`settlement_database_pool_connections{${of(PROCESS)},pool="lanes",state="waiting"}`]: '0 4x20' },
    labels: { ...PROCESS, pool: 'lanes', state: 'waiting' },
    summary: 'Requests wait for a database connection of the pool lanes in worker:9465',
  },
  MemoryRunsOut: {
    series: { [`settlement_process_memory_ratio{${of(PROCESS)}}`]: '0.8 0.9x20' },
    ...between('5m', '6m'),
    labels: PROCESS,
    summary: 'worker:9465 uses 90% of its memory',
  },
  EventLoopLate: {
    series: { [`nodejs_eventloop_lag_p99_seconds{${of(PROCESS)}}`]: '0 0.7x20' },
    ...between('5m', '6m'),
    labels: PROCESS,
    summary: 'The event loop of worker:9465 is blocked',
  },
  NoTaskSlots: {
    series: { [slots('settlement')]: '9 0x20' },
    ...between('5m', '6m'),
    labels: { instance: 'w', task_queue: 'settlement', worker_type: 'ActivityWorker' },
    summary: 'All task slots for ActivityWorker on settlement are in use',
  },
  TasksWait: {
    series: {
      [`${SCHEDULE}{task_queue="settlement",le="1"}`]: '0+10x30',
      [`${SCHEDULE}{task_queue="settlement",le="5"}`]: '0+20x30',
      [`${SCHEDULE}{task_queue="settlement",le="+Inf"}`]: '0+20x30',
    },
    ...between('10m', '12m'),
    labels: { task_queue: 'settlement' },
    summary: 'Workflow tasks on settlement wait for a worker for more than a second',
  },
  BudgetBurnsFast: {
    series: { [slo('good')]: '0+60x120', [slo('bad')]: '0x60 0+2x60' },
    ...between('65m', '80m'),
    labels: OF_SLO,
    summary: 'The error budget of accept is used up within days',
  },
  BudgetBurnsSlowly: {
    series: { [slo('good')]: '0+600x200', [slo('bad')]: '0+1.2x200' },
    ...between('5m', '3h'),
    labels: OF_SLO,
    summary: 'The error budget of accept is used up before its 30 days end',
  },
};

const NO_CASE: Case = { series: {}, summary: '' };
const vanished = (job: string) => ({ [`up{job="${job}",instance="one"}`]: '1 1 stale' });

/** Other ways into an alert: a process vanishes, and a counter begins with its first error. */
const OTHER_CASES: readonly (readonly [alert: string, other: Partial<Case> & Pick<Case, 'series'>])[] = [
  ['ApiDown', { series: vanished('settlement-api'), fires: '3m', labels: { job: 'settlement-api' } }],
  ['WorkerDown', { series: vanished('settlement-worker'), fires: '3m', labels: { job: 'settlement-worker' } }],
  [
    'WorkflowTasksFail',
    { series: { [`${FAILED_TASKS}{workflow_type="settlement"}`]: FIRST.young, [STARTED]: '0x20' } },
  ],
  [
    'WorkflowTasksFail',
    {
      series: { [`${FAILED_TASKS}{workflow_type="settlement"}`]: FIRST.old, ...READ_FOR_LONG },
      ...between('19m', '20m'),
    },
  ],
  ['ProviderEventsRefused', { series: REFUSED_IN_PARTS, labels: { route: PROVIDER } }],
  [
    'NoTaskSlots',
    {
      series: { [slots('webhook-delivery')]: '101 100x20' },
      labels: { instance: 'w', task_queue: 'webhook-delivery', worker_type: 'ActivityWorker' },
      summary: 'All task slots for ActivityWorker on webhook-delivery are in use',
    },
  ],
  [
    'RequestsFail',
    { series: { [`${LATENCY}_count{route="/v2/settle",status="500"}`]: FIRST.young, [STARTED]: '0x20' } },
  ],
  [
    'RequestsFail',
    {
      series: { [`${LATENCY}_count{route="/v2/settle",status="500"}`]: FIRST.old, ...READ_FOR_LONG },
      ...between('19m', '20m'),
    },
  ],
];

/** Of a service that is well, under load. */
const WELL: Readonly<Record<string, string>> = {
  'up{job="settlement-api",instance="api:9464"}': '1x60',
  [`up{${of(PROCESS)}}`]: '1x60',
  settlement_database_up: '1x60',
  [`settlement_temporal_up{${of(PROCESS)}}`]: '1x60',
  'settlement_outbox_oldest_seconds{kind="settlement"}': '0 1 0 2x60',
  'settlement_outbox_rows{kind="settlement"}': '0 3 9 1x60',
  settlement_outbox_rows_limit: '200000x60',
  'settlement_oldest_open_seconds{state="awaiting_funds"}': '0+60x60',
  'settlement_oldest_open_seconds{state="accepted"}': '0 1 0 1x60',
  'settlement_overdue{state="awaiting_funds"}': '0x60',
  'settlement_runs_restarted_total{kind="settlement"}': '7x60',
  'settlement_sweep_age_seconds{kind="settlement"}': '3 18 9 12x60',
  'settlement_open{state="needs_review"}': '0x60',
  'settlement_http_refusals_total{code="launch_gates_closed"}': '0x60',
  'settlement_http_refusals_total{code="temporarily_unavailable"}': '2x60',
  'settlement_deliveries{status="exhausted"}': '0x60',
  settlement_deliveries_overdue: '0x60',
  [`${LATENCY}_count{route="/v2/settle",method="POST",status="202"}`]: '0+600x60',
  [`${LATENCY}_count{route="${PROVIDER}",method="POST",status="200"}`]: '0+600x60',
  [`${LATENCY}_count{route="${PROVIDER}",method="POST",status="401"}`]: '_ 1 1 2 3 5x60',
  [`${LATENCY}_count{route="/v2/settle",method="POST",status="500"}`]: '4x60',
  [`${LATENCY}_bucket{method="POST",le="1"}`]: '0+600x60',
  [`${LATENCY}_bucket{method="POST",le="+Inf"}`]: '0+600x60',
  [`settlement_database_pool_connections{${of(PROCESS)},pool="main",state="waiting"}`]: '0x60',
  [`nodejs_eventloop_lag_p99_seconds{${of(PROCESS)}}`]: '0.02x60',
  [`settlement_clock_offset_seconds{${of(PROCESS)}}`]: '0.01 -0.02 1.9x60',
  [`settlement_process_memory_ratio{${of(PROCESS)}}`]: '0.84x60',
  [`${FAILED_TASKS}{workflow_type="settlement"}`]: '3x60',
  'settlement_activity_failures_total{activity="sendPayout"}': '1x60',
  settlement_payout_call_failures_total: '1x60',
  'settlement_oldest_open_seconds{state="needs_review"}': '0x60',
  settlement_refund_oldest_seconds: '3600x60',
  settlement_gate_evidence_expiring: '0x60',
  settlement_keys_expiring: '0x60',
  settlement_partition_days_ahead: '93x60',
  settlement_retention_overdue_days: '0x60',
  [slots('settlement')]: '0 0 9x60',
  [slots('webhook-delivery')]: '99 99 101x60',
  [`${SCHEDULE}{task_queue="settlement",le="1"}`]: '0+99x60',
  [`${SCHEDULE}{task_queue="settlement",le="+Inf"}`]: '0+100x60',
  [slo('good')]: '0+600x60',
  [slo('bad')]: '0+0.3x60',
  [STARTED]: '-86400x60',
};
const REFUSED_LONG_AGO = { [`${LATENCY}_count{route="${PROVIDER}",method="POST",status="409"}`]: '40x60' };

const inputOf = (series: Readonly<Record<string, string>>) => ({
  interval: '1m',
  input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
});

/** What promtool says of these cases; empty when each is as expected. */
async function faultsOf(promtool: string, tests: readonly unknown[]): Promise<string> {
  const file = path.join(os.tmpdir(), `alerts-${process.pid}.yaml`);
  writeFileSync(
    file,
    stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }, { aliasDuplicateObjects: false }),
  );
  try {
    const { failed, all } = await execa(promtool, ['test', 'rules', file], { all: true, reject: false });
    return failed ? all || 'promtool ended without a word' : '';
  } finally {
    rmSync(file);
  }
}

const metricOf = (series: string): string => series.split('{')[0] ?? series;

test('every alert has a case in which it fires, and its metrics when the service is well', () => {
  expect(Object.keys(CASES)).toEqual(ALERTS.map(({ alert }) => alert));
  const well = new Set(Object.keys(WELL).map(metricOf));
  for (const [alert, { series }] of Object.entries(CASES))
    for (const name of Object.keys(series)) expect(well, alert).toContain(metricOf(name));
});

describe.runIf(programs)('promtool', () => {
  const promtool = programs?.promtool ?? '';

  test('the rules are valid', async () => {
    const { stdout } = await execa(promtool, ['check', 'rules', RULES]);
    expect(stdout).toContain(`SUCCESS: ${ALL.length} rules found`);
  });

  test('each alert fires when its condition has lasted, not before, and says what is wrong', async () => {
    const cases = [...ALERTS.map(({ alert }) => [alert, {}] as const), ...OTHER_CASES];
    const tests = cases.map(([alert, other]) => {
      const found: Case = { ...(CASES[alert] ?? NO_CASE), ...other };
      const severity = ALERTS.find((rule) => rule.alert === alert)?.severity;
      const { series, quiet = '1m', fires = '2m', labels = {}, summary } = found;
      const firing = { exp_labels: { severity, ...labels }, exp_annotations: { summary } };
      return {
        ...inputOf(series),
        alert_rule_test: [
          { eval_time: quiet, alertname: alert, exp_alerts: [] },
          { eval_time: fires, alertname: alert, exp_alerts: [firing] },
        ],
      };
    });
    expect(await faultsOf(promtool, tests)).toBe('');
  });

  test('no alert fires in an hour in which the service is well', async () => {
    const never = ALERTS.flatMap(({ alert }) =>
      ['15m', '30m', '45m', '59m'].map((eval_time) => ({ eval_time, alertname: alert, exp_alerts: [] })),
    );
    expect(await faultsOf(promtool, [{ ...inputOf(WELL), alert_rule_test: never }])).toBe('');
  });

  test('no alert fires when Prometheus begins to read a service that has run for long and is well', async () => {
    const read = Object.entries({ ...WELL, ...REFUSED_LONG_AGO }).map(([name, values]) => [name, `_x20 ${values}`]);
    const never = ALERTS.flatMap(({ alert }) =>
      ['22m', '26m', '35m'].map((eval_time) => ({ eval_time, alertname: alert, exp_alerts: [] })),
    );
    expect(await faultsOf(promtool, [{ ...inputOf(Object.fromEntries(read)), alert_rule_test: never }])).toBe('');
  });
});
