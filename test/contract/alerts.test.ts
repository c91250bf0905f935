/** `docs/alerts.yaml` against what an API and a worker really expose, and against the page that explains it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { workerMetricsPort } from '../../process/metrics.ts';
import { repositoryRoot } from '../../process/place.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { devServer } from '../support/temporal.ts';

const read = (file: string): string => readFileSync(path.join(repositoryRoot, file), 'utf8');
const Rules = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string(),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.strictObject({ severity: z.enum(['page', 'ticket', 'info']) }),
          annotations: z.strictObject({ summary: z.string() }),
        }),
      ),
    }),
  ),
});
const RULES = Rules.parse(parse(read('docs/alerts.yaml'))).groups.flatMap(({ rules }) => rules);
/** Prometheus makes it itself, for each process it scrapes. */
const OF_PROMETHEUS = ['up'];
const PAGE_WAIT_MS = 60_000;

const children: ChildProcess[] = [];
let end: () => Promise<void>;
let page = '';

beforeAll(async () => {
  const [{ databaseUrl, drop }, temporal, metricsPort, port] = [
    await createTestDatabase(),
    await devServer(),
    await freePort(),
    await freePort(),
  ];
  const env = {
    ...process.env,
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    LOG_LEVEL: 'silent',
  };
  for (const script of ['api/main.ts', 'worker/main.ts'])
    children.push(spawn(process.execPath, ['--import', 'tsx', script], { cwd: repositoryRoot, env, stdio: 'ignore' }));
  end = async () => {
    for (const child of children) if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    await temporal.close();
    await drop();
  };
  // A workflow that the code does not know is a workflow task that fails, which the worker counts.
  await temporal.client.workflow.start('unheardOf', { workflowId: 'unheard-of', taskQueue: TASK_QUEUE });
  const api = await scrape(metricsPort, 'settlement_open{');
  await fetch(`http://127.0.0.1:${port}/health/live`);
  page = `${api}${await scrape(metricsPort, 'settlement_http_request_duration_seconds_count{')}${await scrape(workerMetricsPort(metricsPort), 'temporal_workflow_task_execution_failed{')}`;
}, 120_000);
afterAll(() => end());

/** The metrics of a process, once they contain `sample`. */
async function scrape(port: number, sample: string): Promise<string> {
  const read = async (): Promise<string> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text).toContain(sample);
    return text;
  };
  return await vi.waitFor(read, { timeout: PAGE_WAIT_MS, interval: 100 });
}

/** The metrics of an expression: names that are no function, keyword or label. */
const metricsOf = (expr: string): string[] =>
  [
    ...expr
      .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
      .replace(/\bby \([^)]*\)/g, ' ')
      .matchAll(/\b[a-z][a-z0-9_]*\b(?!\s*\()/g),
  ]
    .map(([name]) => name)
    .filter((name) => !['sum', 'min', 'max'].includes(name));

test.each(RULES.map(({ alert, expr }) => [alert, expr]))(
  '%s is about metrics and labels that are exposed',
  (_alert, expr) => {
    const metrics = metricsOf(expr);
    expect(metrics).not.toEqual([]);
    for (const metric of metrics.filter((name) => !OF_PROMETHEUS.includes(name))) {
      const samples = page.split('\n').filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `));
      expect(samples, metric).not.toEqual([]);
      const labels = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
      for (const label of labels.filter((name) => name !== 'instance'))
        expect(samples[0], `${metric} by ${label}`).toContain(`${label}="`);
    }
  },
);

test.each(
  RULES.flatMap(({ alert, expr }) =>
    [...expr.matchAll(/(\w+)\{([a-z]+)(=~?)"([^"]*)"\}/g)].map(([, metric = '', label = '', how = '', value = '']) => ({
      alert,
      metric,
      label,
      how,
      value,
    })),
  ).filter(
    // A status and a job are there when somebody has them; the rest is exposed from zero on.
    ({ label }) => label !== 'job' && label !== 'status' && label !== 'method',
  ),
)('$alert: $label $how $value of $metric is exposed', ({ metric, label, how, value }) => {
  for (const each of how === '=~' ? value.split('|') : [value])
    expect(page).toMatch(new RegExp(`^${metric}\\{[^}]*${label}="${each}"`, 'm'));
});

test('no alert is named twice, and each is explained with its next step in docs/operations.md', () => {
  const names = RULES.map(({ alert }) => alert);
  expect(new Set(names).size).toBe(names.length);
  const explained = [...read('docs/operations.md').matchAll(/^\| `([A-Z][a-z]\w+)` \|/gm)].map(([, name]) => name);
  expect(explained).toEqual(names);
});
