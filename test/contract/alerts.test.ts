/**
 * `docs/alerts.yaml` and the dashboard, compared with the metrics of a real API and worker and with the page that
 * explains them. A real Prometheus reads both.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { describe, expect, vi } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { repositoryRoot } from '../../process/local/place.ts';
import { workerMetricsPort } from '../../process/metrics.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';
import { testPrograms } from '../support/program.ts';
import { findPrometheus, freeMetricsPort, localConfig, startPrometheus } from '../support/prometheus.ts';
import { readSource } from '../support/source.ts';
import { devServer } from '../support/temporal.ts';

const Rules = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.union([
          z.strictObject({ record: z.string(), expr: z.string() }),
          z.strictObject({
            alert: z.string(),
            expr: z.string(),
            for: z.string().optional(),
            labels: z.strictObject({ severity: z.enum(['page', 'ticket', 'info']) }),
            annotations: z.strictObject({ summary: z.string() }),
          }),
        ]),
      ),
    }),
  ),
});
const ALL_RULES = Rules.parse(parse(readSource('docs/alerts.yaml'))).groups.flatMap(({ rules }) => rules);
const RULES = ALL_RULES.flatMap((rule) => ('alert' in rule ? [rule] : []));
const RECORDED = ALL_RULES.flatMap((rule) => ('record' in rule ? [rule] : []));
/** Prometheus adds them for each process that it scrapes, and by the rules. */
const OF_PROMETHEUS = ['up', 'ALERTS', ...RECORDED.map(({ record }) => record)];

const Dashboard = z.looseObject({
  templating: z.object({ list: z.array(z.looseObject({ name: z.string(), definition: z.string() })) }),
  panels: z.array(
    z.looseObject({
      type: z.string(),
      title: z.string(),
      targets: z.array(z.looseObject({ expr: z.string(), datasource: z.object({ uid: z.string() }) })).default([]),
    }),
  ),
});
const DASHBOARD = Dashboard.parse(JSON.parse(readSource('docs/observability/dashboard.json')));
const PANELS = DASHBOARD.panels.filter(({ type }) => type !== 'row');
/** An expression as Grafana sends it, for the processes that the fixture starts. */
const sent = (expr: string): string => expr.replaceAll('$runtime', 'remote').replaceAll('$__rate_interval', '10s');
const [DATA_SOURCE] = z
  .object({ datasources: z.tuple([z.looseObject({ uid: z.string() })]) })
  .parse(parse(readSource('docs/observability/grafana-datasource.yaml'))).datasources;
const programs = await findPrometheus();

/**
 * An API and a worker as processes of their own; `page` has their metrics after one request and one failed task.
 * `failTask` makes another workflow task fail.
 */
const test = withDatabase().extend('observed', FILE, async ({ database }, { onCleanup }) => {
  const [temporal, metricsPort, port] = [await devServer(), await freeMetricsPort(), await freePort()];
  const env = {
    ...process.env,
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    DATABASE_URL: database.databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    LOG_LEVEL: 'silent',
  };
  const { api: apiProgram, worker: workerProgram } = await testPrograms();
  const children = [apiProgram, workerProgram].map((file) =>
    spawn(process.execPath, [file], { cwd: repositoryRoot, env, stdio: 'ignore' }),
  );
  onCleanup(async () => {
    for (const child of children) if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    await temporal.close();
  });
  // A workflow of an unknown type makes a workflow task fail, which the worker counts.
  const failTask = async (workflowId: string) =>
    void (await temporal.client.workflow.start('unknownType', { workflowId, taskQueue: TASK_QUEUE }));
  await failTask('unknown-type');
  const before = await scrape(metricsPort, 'settlement_open{');
  await fetch(`http://127.0.0.1:${port}/health/live`);
  const api = await scrape(metricsPort, 'settlement_http_request_duration_seconds_count{');
  const worker = await scrape(workerMetricsPort(metricsPort), 'temporal_workflow_task_execution_failed_total{');
  return {
    page: before + api + worker,
    url: `http://127.0.0.1:${port}`,
    api: `127.0.0.1:${metricsPort}`,
    worker: `127.0.0.1:${workerMetricsPort(metricsPort)}`,
    failTask,
  };
});
test.beforeAll(({ observed: _ }) => undefined);

/** The metrics of a process, once they contain `sample`. */
async function scrape(port: number, sample: string): Promise<string> {
  const read = async (): Promise<string> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text).toContain(sample);
    return text;
  };
  return await vi.waitFor(read, WAIT);
}

/** The metrics in an expression: its names without functions, keywords and labels. */
const metricsOf = (expr: string): string[] =>
  [
    ...expr
      .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
      .replace(/\b(by|on) \([^)]*\)/g, ' ')
      .matchAll(/\b[a-zA-Z][a-zA-Z0-9_:]*\b(?!\s*\()/g),
  ]
    .map(([name]) => name)
    .filter((name) => !['sum', 'min', 'max', 'or', 'and', 'unless', 'offset'].includes(name));

/** Expects each metric of an expression, and each label that it is grouped by, on the page. */
function expectExposed(expr: string, page: string): void {
  const metrics = metricsOf(expr);
  expect(metrics).not.toEqual([]);
  for (const metric of metrics.filter((name) => !OF_PROMETHEUS.includes(name))) {
    const samples = page.split('\n').filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `));
    expect(samples, metric).not.toEqual([]);
    const labels = [...expr.matchAll(/by \(([^)]*)\) \((?:\w+\()?(\w+)/g)]
      .filter(([, , grouped]) => grouped === metric)
      .flatMap(([, list = '']) => list.split(', '));
    for (const label of labels.filter((name) => name !== 'instance' && name !== 'runtime'))
      expect(samples[0], `${metric} by ${label}`).toContain(`${label}="`);
  }
}

test.for([
  ...RULES.map(({ alert, expr }) => [alert, expr] as const),
  ...RECORDED.map(({ record, expr }) => [record, expr] as const),
])('%s uses metrics and labels that are exposed', ([_alert, expr], { observed }) => expectExposed(expr, observed.page));

test.for(
  RULES.flatMap(({ alert, expr }) =>
    [...expr.matchAll(/(\w+)\{([a-z]+)(=~?)"([^"]*)"\}/g)].map(([, metric = '', label = '', how = '', value = '']) => ({
      alert,
      metric,
      label,
      how,
      value,
    })),
  ).filter(
    // A status and a job appear with the first sample that has them; every other label is exposed from zero on.
    ({ label }) => label !== 'job' && label !== 'status' && label !== 'method',
  ),
)('$alert: $label $how $value of $metric is exposed', ({ metric, label, how, value }, { observed: { page } }) => {
  for (const each of how === '=~' ? value.split('|') : [value])
    expect(page).toMatch(new RegExp(`^${metric}\\{[^}]*${label}="${each}"`, 'm'));
});

test.for(['main', 'lanes', 'retries'])('the connections of the pool %s are exposed', (pool, { observed: { page } }) => {
  for (const state of ['total', 'idle', 'waiting'])
    expect(page).toMatch(
      new RegExp(`^settlement_database_pool_connections\\{pool="${pool}",state="${state}"\\} \\d`, 'm'),
    );
});

test('every alert has its own name and is explained in docs/operations.md', () => {
  const names = RULES.map(({ alert }) => alert);
  expect(new Set(names).size).toBe(names.length);
  const explained = [...readSource('docs/operations.md').matchAll(/^\| `([A-Z][a-z]\w+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(explained).toEqual(names);
});

describe('the dashboard', () => {
  test.for(PANELS.map(({ title, targets }) => [title, targets] as const))(
    '"%s" uses metrics and labels that are exposed, of the one data source, for the chosen runtime',
    ([_title, targets], { observed }) => {
      expect(targets).not.toEqual([]);
      for (const { expr, datasource } of targets) {
        expect(datasource.uid).toBe(DATA_SOURCE.uid);
        expectExposed(expr, observed.page);
        if (!expr.startsWith('ALERTS')) expect(expr).toContain('runtime="$runtime"');
      }
    },
  );

  test('has the questions of docs/operations.md as titles, in their order, and each answer names what exists', () => {
    const [, section = ''] = readSource('docs/operations.md').split('\n## Dashboard\n');
    const [table = ''] = section.split('\n## ');
    const lines = [...table.matchAll(/^\| (.+\?) \| .+ \| (.+) \|$/gm)].map(([, question, next = '']) => ({
      question,
      next,
    }));
    expect(lines.map(({ question }) => question)).toEqual(PANELS.map(({ title }) => title));
    const alerts = RULES.map(({ alert }) => alert);
    const named = lines.flatMap(({ next }) => [...next.matchAll(/`([A-Z]\w+)`/g)].map(([, name]) => name));
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !alerts.includes(name ?? ''))).toEqual([]);
  });

  test('is provisioned with the uid of its data source', () => {
    expect(DATA_SOURCE).toMatchObject({ type: 'prometheus', url: 'http://prometheus:9090' });
    expect(DASHBOARD.templating.list.map(({ name }) => name)).toEqual(['runtime']);
  });
});

describe.runIf(programs)('a real Prometheus (where it can be had)', () => {
  test('scrapes both processes under load, answers each panel, and lets an alert fire', async ({ observed }) => {
    if (!programs) throw new Error('There is no Prometheus.');
    const rules = path.join(repositoryRoot, 'docs/alerts.yaml');
    const config = localConfig(readSource('docs/observability/prometheus.yaml'), { ...observed, rules, intervalS: 1 });
    const prometheus = await startPrometheus(programs, config);
    // The API may close a kept connection as the next request is sent: the load goes on.
    const request = () => fetch(`${observed.url}/v2/capabilities`, { method: 'POST' }).catch(() => undefined);
    const load = setInterval(() => void request(), 50);
    try {
      await vi.waitUntil(async () => (await prometheus.query('up == 1')).length === 2, WAIT);
      await observed.failTask('unknown-type-again');
      await vi.waitUntil(async () => (await prometheus.alerts('firing')).includes('WorkflowTasksFail'), WAIT);
      for (const { title, targets } of PANELS) {
        // A rate is empty until two samples of its series lie in its window.
        const answer = () => Promise.all(targets.map(({ expr }) => prometheus.query(sent(expr))));
        const hasAll = async () => (await answer()).every(({ length }) => length > 0);
        await expect.poll(hasAll, { ...WAIT, message: title }).toBe(true);
      }
      expect(await prometheus.query('ALERTS{alertstate="firing"}')).toContainEqual(
        expect.objectContaining({ alertname: 'WorkflowTasksFail', severity: 'page', workflow_type: 'unknownType' }),
      );
    } finally {
      clearInterval(load);
      await prometheus.stop();
    }
  });
});
