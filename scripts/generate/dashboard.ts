/** `docs/observability/dashboard.json`: each panel is a question of docs/operations.md, "Dashboard". */

const DATA_SOURCE = { type: 'prometheus', uid: 'settlement-prometheus' };
const OF_RUNTIME = 'runtime="$runtime"';
const WIDTH = 24;
const PANEL = { w: 8, h: 7 };

/** An expression, in which `{}` or `{…}` gets the chosen runtime, and its legend. */
type Query = readonly [expr: string, legend: string];
type Panel = {
  readonly question: string;
  readonly unit?: string;
  readonly queries: readonly Query[];
  readonly as?: object;
};

const gauge = (metric: string, label: string): Query => [`max by (${label}) (${metric}{})`, `{{${label}}}`];
const quantile = (share: number, labels: string, metric: string): string =>
  `histogram_quantile(${share}, sum by (le${labels}) (rate(${metric}[$__rate_interval])))`;

const UP = {
  type: 'stat',
  fieldConfig: {
    defaults: {
      mappings: [{ type: 'value', options: { 0: { text: 'DOWN', color: 'red' }, 1: { text: 'up', color: 'green' } } }],
      thresholds: {
        mode: 'absolute',
        steps: [
          { color: 'red', value: null },
          { color: 'green', value: 1 },
        ],
      },
    },
    overrides: [],
  },
  options: {
    colorMode: 'background',
    graphMode: 'none',
    textMode: 'value_and_name',
    reduceOptions: { calcs: ['lastNotNull'] },
  },
};
const TABLE = {
  type: 'table',
  fieldConfig: { defaults: {}, overrides: [] },
  options: { showHeader: true },
  transformations: [
    {
      id: 'organize',
      options: {
        excludeByName: { Time: true, Value: true, __name__: true, alertstate: true },
        indexByName: { alertname: 0, severity: 1 },
      },
    },
  ],
};

const REQUESTS = 'settlement_http_request_duration_seconds';
const ROWS: Readonly<Record<string, readonly Panel[]>> = {
  'Does the service answer?': [
    {
      question: 'Are the API, the workers, PostgreSQL and Temporal up?',
      queries: [
        ['min by (job) (up{})', '{{job}}'],
        ['min(settlement_database_up{})', 'PostgreSQL'],
        ['min(settlement_temporal_up{})', 'Temporal'],
      ],
      as: UP,
    },
    { question: 'Which alerts fire?', queries: [['ALERTS{alertstate="firing"}', '']], as: TABLE },
    {
      question: 'How much of the error budget is left?',
      unit: 'percentunit',
      queries: [['1 - settlement_slo:bad:ratio_rate30d{} / 0.001', '{{slo}}']],
    },
    {
      question: 'How many times too fast is the error budget used up?',
      queries: [['settlement_slo:bad:ratio_rate1h{} / 0.001', '{{slo}}']],
    },
    {
      question: 'How many requests come, and with which answers?',
      unit: 'reqps',
      queries: [[`sum by (status) (rate(${REQUESTS}_count{}[$__rate_interval]))`, '{{status}}']],
    },
    {
      question: 'How long do answers take?',
      unit: 's',
      queries: [
        [quantile(0.5, '', `${REQUESTS}_bucket{method="POST"}`), 'POST, half of them'],
        [quantile(0.99, '', `${REQUESTS}_bucket{method="POST"}`), 'POST, 99 of 100'],
      ],
    },
    {
      question: 'Why are requests refused?',
      unit: 'reqps',
      queries: [['sum by (code) (rate(settlement_http_refusals_total{}[$__rate_interval])) > 0', '{{code}}']],
    },
  ],
  'Do settlements move?': [
    { question: 'How many settlements are open, and in which state?', queries: [gauge('settlement_open', 'state')] },
    {
      question: 'How long has the oldest settlement been in its state?',
      unit: 's',
      queries: [gauge('settlement_oldest_open_seconds', 'state')],
    },
    { question: 'Is a wait over that nobody ended?', queries: [gauge('settlement_overdue', 'state')] },
    {
      question: 'How did settlements end in the last five minutes?',
      queries: [gauge('settlement_finished_last_five_minutes', 'state')],
    },
    {
      question: 'Are runs lost, and does the sweep look for them?',
      queries: [
        ['max by (kind) (increase(settlement_runs_restarted_total{}[15m]))', 'restarted in 15 min: {{kind}}'],
        ['max(settlement_sweep_age_seconds{})', 'age of the last sweep in seconds'],
      ],
    },
    {
      question: 'Which activities fail?',
      queries: [
        ['sum by (activity) (increase(settlement_activity_failures_total{}[10m]))', '{{activity}}'],
        ['sum(increase(settlement_payout_call_failures_total{}[10m]))', 'calls to the payout rail'],
      ],
    },
    {
      question: 'What is due, or expires?',
      queries: [
        ['max(settlement_refunds_due{})', 'settlements with money due back'],
        ['max(settlement_gate_evidence_expiring{})', 'evidence that expires'],
        ['max(settlement_keys_expiring{})', 'last keys that expire'],
      ],
    },
    {
      question: 'For how many days do new events have a partition?',
      queries: [['min(settlement_partition_days_ahead{})', 'days']],
    },
    {
      question: 'For how many days is something kept too long?',
      queries: [['max(settlement_retention_overdue_days{})', 'days']],
    },
  ],
  'Does committed work reach Temporal and the subscribers?': [
    {
      question: 'Does the outbox grow?',
      queries: [
        gauge('settlement_outbox_rows', 'kind'),
        ['0.1 * max(settlement_outbox_rows_limit{})', 'OutboxGrows fires above'],
      ],
    },
    {
      question: 'How long has the oldest outbox row waited?',
      unit: 's',
      queries: [gauge('settlement_outbox_oldest_seconds', 'kind')],
    },
    {
      question: 'Do subscribers get their events?',
      queries: [gauge('settlement_deliveries', 'status'), ['max(settlement_deliveries_overdue{})', 'late']],
    },
  ],
  'Is there room?': [
    {
      question: 'Do the workers keep up?',
      unit: 's',
      queries: [
        [
          quantile(0.95, ', task_queue', 'temporal_workflow_task_schedule_to_start_latency_seconds_bucket{}'),
          'wait of 95 of 100 tasks: {{task_queue}}',
        ],
      ],
    },
    {
      question: 'How many task slots are free?',
      queries: [
        [
          'min by (instance, task_queue, worker_type) (temporal_worker_task_slots_available{})',
          '{{instance}} {{task_queue}} {{worker_type}}',
        ],
      ],
    },
    {
      question: 'Do workflow tasks fail?',
      queries: [
        [
          'sum by (workflow_type) (increase(temporal_workflow_task_execution_failed_total{}[10m]))',
          '{{workflow_type}}',
        ],
      ],
    },
    {
      question: 'Do requests wait for a database connection?',
      queries: [['settlement_database_pool_connections{}', '{{instance}} {{pool}} {{state}}']],
    },
    {
      question: 'Is an event loop blocked?',
      unit: 's',
      queries: [['nodejs_eventloop_lag_p99_seconds{}', '{{instance}}']],
    },
    {
      question: 'How much of their memory do the processes use?',
      unit: 'percentunit',
      queries: [['settlement_process_memory_ratio{}', '{{instance}}']],
    },
    {
      question: 'Do the clocks agree with that of PostgreSQL?',
      unit: 's',
      queries: [['settlement_clock_offset_seconds{}', '{{instance}}']],
    },
  ],
};

const ofRuntime = (expr: string): string =>
  expr.startsWith('ALERTS')
    ? expr
    : expr.replaceAll('{}', `{${OF_RUNTIME}}`).replaceAll('{method', `{${OF_RUNTIME},method`);

function panelOf({ question: title, unit = 'none', queries, as }: Panel, place: { x: number; y: number }) {
  const time = as ? { instant: true, range: false, ...(as === TABLE && { format: 'table' }) } : { range: true };
  const lines = {
    type: 'timeseries',
    fieldConfig: {
      defaults: {
        unit,
        ...(title.startsWith('Do the clocks') ? {} : { min: 0 }),
        custom: { fillOpacity: 10, lineWidth: 1, showPoints: 'never' },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  };
  const targets = queries.map(([expr, legendFormat], index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource: DATA_SOURCE,
    expr: ofRuntime(expr),
    legendFormat,
    ...time,
  }));
  return { ...(as ?? lines), title, datasource: DATA_SOURCE, gridPos: { ...place, ...PANEL }, targets };
}

/** Rows of three panels under a title each. */
function panels() {
  let y = 0;
  return Object.entries(ROWS)
    .flatMap(([title, row]) => {
      const top = y + 1;
      const placed = row.map((panel, index) =>
        panelOf(panel, { x: (index * PANEL.w) % WIDTH, y: top + Math.floor((index * PANEL.w) / WIDTH) * PANEL.h }),
      );
      const head = { type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: WIDTH, h: 1 }, panels: [] };
      y = top + Math.ceil((row.length * PANEL.w) / WIDTH) * PANEL.h;
      return [head, ...placed];
    })
    .map((panel, index) => ({ id: index + 1, ...panel }));
}

const RUNTIMES = 'label_values(up{job="settlement-api"}, runtime)';
const HEAD = {
  uid: 'settlement-service',
  title: 'Settlement service',
  description: 'Each title is a question of docs/operations.md, "Dashboard", which says what to do next.',
  tags: ['settlement'],
  schemaVersion: 39,
  version: 1,
  editable: false,
  graphTooltip: 1,
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  timezone: 'browser',
  templating: {
    list: [
      {
        name: 'runtime',
        label: 'Runtime',
        type: 'query',
        datasource: DATA_SOURCE,
        query: { query: RUNTIMES, refId: 'runtime' },
        definition: RUNTIMES,
        refresh: 2,
        sort: 1,
        includeAll: false,
        multi: false,
        options: [],
        current: {},
      },
    ],
  },
  annotations: { list: [] },
  links: [],
};

/** One panel a line, so that a change is seen. */
export const dashboard = (): string =>
  `${JSON.stringify(HEAD).slice(0, -1)},"panels":[\n${panels()
    .map((panel) => JSON.stringify(panel))
    .join(',\n')}\n]}\n`;
