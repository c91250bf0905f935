/**
 * `docs/alerts.yaml` compared with the metrics of a real API and worker, and with the page that explains the alerts.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, vi } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { workerMetricsPort } from '../../process/metrics.ts';
import { repositoryRoot } from '../../process/place.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { FILE, withDatabase } from '../support/fixture.ts';
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
/** Prometheus adds it for each process that it scrapes. */
const OF_PROMETHEUS = ['up'];
const PAGE_WAIT_MS = 60_000;

/** An API and a worker as processes of their own; `page` has their metrics after one request and one failed task. */
const test = withDatabase().extend('page', FILE, async ({ database }, { onCleanup }) => {
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
  const children = ['api/main.ts', 'worker/main.ts'].map((script) =>
    spawn(process.execPath, ['--import', 'tsx', script], { cwd: repositoryRoot, env, stdio: 'ignore' }),
  );
  onCleanup(async () => {
    for (const child of children) if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    await temporal.close();
  });
  // A workflow of an unknown type makes a workflow task fail, which the worker counts.
  await temporal.client.workflow.start('unknownType', { workflowId: 'unknown-type', taskQueue: TASK_QUEUE });
  const before = await scrape(metricsPort, 'settlement_open{');
  await fetch(`http://127.0.0.1:${port}/health/live`);
  const api = await scrape(metricsPort, 'settlement_http_request_duration_seconds_count{');
  const worker = await scrape(workerMetricsPort(metricsPort), 'temporal_workflow_task_execution_failed{');
  return before + api + worker;
});
test.beforeAll(({ page: _page }) => undefined, 120_000);

/**
 * A port for the API's metrics, with the one after it free for the worker's. They are below the ports that the system
 * gives to outgoing connections, which may have taken the second one.
 */
async function freeMetricsPort(): Promise<number> {
  for (;;) {
    const port = await freePort(randomInt(10_000, 30_000));
    if ((await freePort(workerMetricsPort(port))) === workerMetricsPort(port)) return port;
  }
}

/** The metrics of a process, once they contain `sample`. */
async function scrape(port: number, sample: string): Promise<string> {
  const read = async (): Promise<string> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text).toContain(sample);
    return text;
  };
  return await vi.waitFor(read, { timeout: PAGE_WAIT_MS, interval: 100 });
}

/** The metrics in an expression: its names without functions, keywords and labels. */
const metricsOf = (expr: string): string[] =>
  [
    ...expr
      .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
      .replace(/\bby \([^)]*\)/g, ' ')
      .matchAll(/\b[a-z][a-z0-9_]*\b(?!\s*\()/g),
  ]
    .map(([name]) => name)
    .filter((name) => !['sum', 'min', 'max'].includes(name));

test.for(RULES.map(({ alert, expr }) => [alert, expr] as const))(
  '%s uses metrics and labels that are exposed',
  ([_alert, expr], { page }) => {
    const metrics = metricsOf(expr);
    expect(metrics).not.toEqual([]);
    for (const metric of metrics.filter((name) => !OF_PROMETHEUS.includes(name))) {
      const samples = page.split('\n').filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `));
      expect(samples, metric).not.toEqual([]);
      const labels = [...expr.matchAll(/by \(([^)]*)\) \((?:\w+\()?(\w+)/g)]
        .filter(([, , grouped]) => grouped === metric)
        .flatMap(([, list = '']) => list.split(', '));
      for (const label of labels.filter((name) => name !== 'instance'))
        expect(samples[0], `${metric} by ${label}`).toContain(`${label}="`);
    }
  },
);

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
)('$alert: $label $how $value of $metric is exposed', ({ metric, label, how, value }, { page }) => {
  for (const each of how === '=~' ? value.split('|') : [value])
    expect(page).toMatch(new RegExp(`^${metric}\\{[^}]*${label}="${each}"`, 'm'));
});

test('every alert has its own name and is explained in docs/operations.md', () => {
  const names = RULES.map(({ alert }) => alert);
  expect(new Set(names).size).toBe(names.length);
  const explained = [...read('docs/operations.md').matchAll(/^\| `([A-Z][a-z]\w+)` \|/gm)].map(([, name]) => name);
  expect(explained).toEqual(names);
});
