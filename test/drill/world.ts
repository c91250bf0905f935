/** What the drills break: the service as separate processes, a partner that uses it, and a Prometheus that watches. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { CommandError, EXIT } from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { workerMetricsPort } from '../../process/metrics.ts';
import { type Partner, signUp } from '../../scripts/sandbox/partner.ts';
import { queryOnce } from '../support/connection.ts';
import { type ProcessStack, startProcessStack } from '../support/process-stack.ts';
import {
  findPrometheus,
  freeMetricsPort,
  localConfig,
  type Prometheus,
  startPrometheus,
} from '../support/prometheus.ts';
import { SERVICE_ENV } from '../support/provider-event.ts';
import { until } from '../support/wait.ts';
import { runOperator } from '../torture/operator.ts';

const SCRAPE_TIMEOUT_MS = 60_000;
/** The rules' own wait, so that a drill takes seconds. test/contract/alert-rules.test.ts proves the real ones. */
const ALERT_WAIT = '5s';

export type World = {
  readonly stack: ProcessStack;
  readonly prometheus: Prometheus;
  readonly partner: Partner;
  /** Runs an operator's command. Both outputs, as the terminal shows them. */
  ops(args: readonly string[]): Promise<{ readonly exitCode: number; readonly text: string }>;
  /** As the owner of the tables. */
  sql(statement: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** The lines of a process's log that contain all of these. */
  log(program: 'api' | 'worker', ...parts: readonly string[]): string[];
  close(): Promise<void>;
};

/** @throws CommandError where there is no Prometheus */
export async function startWorld(): Promise<World> {
  const programs = await findPrometheus();
  if (!programs)
    throw new CommandError(
      EXIT.unavailable,
      'The drills need Prometheus: install it, or name its folder in PROMETHEUS_PATH.',
    );
  const metricsPort = await freeMetricsPort();
  const env = { ...SERVICE_ENV, METRICS_PORT: String(metricsPort), LOG_LEVEL: 'info' };
  const stack = await startProcessStack({ env });
  const opened: { prometheus?: Prometheus } = {};
  const close = async (): Promise<void> => {
    await opened.prometheus?.stop();
    await stack.close();
  };
  try {
    const prometheus = await startPrometheus(programs, prometheusConfig(stack.folder, metricsPort));
    opened.prometheus = prometheus;
    // A counter that Prometheus first sees after it has changed has not changed.
    const isScraped = async () => (await prometheus.query('up == 1')).length === 2;
    await until('scrape of both processes', isScraped, { timeoutMs: SCRAPE_TIMEOUT_MS });
    const partner = await signUp({ baseUrl: stack.baseUrl });
    return { stack, prometheus, partner, close, ...toolsOf(stack) };
  } catch (error) {
    await close();
    throw error;
  }
}

const toolsOf = (stack: ProcessStack): Pick<World, 'ops' | 'sql' | 'log'> => ({
  ops: async (args) => {
    const { exitCode = EXIT.unexpected, all } = await runOperator(stack, args, { NO_COLOR: '1' });
    return { exitCode, text: all };
  },
  sql: (statement, values) => queryOnce(stack.migrationUrl, statement, values),
  log: (program, ...parts) =>
    readFileSync(path.join(stack.folder, `${program}.log`), 'utf8')
      .split('\n')
      .filter((line) => parts.every((part) => line.includes(part))),
});

/** Runs this with a client of the stack's Temporal, whose connection ends with it. */
export async function onTemporal<T>({ stack }: World, run: (temporal: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    return await run(new Client({ connection }));
  } finally {
    await connection.close();
  }
}

/** The option of Node that loads a fixture before a program. */
export const preload = (fixture: string): string =>
  `--import=${pathToFileURL(path.join(repositoryRoot, 'test', 'fixtures', fixture))}`;

function prometheusConfig(folder: string, metricsPort: number): string {
  const read = (file: string): string => readFileSync(path.join(repositoryRoot, 'docs', file), 'utf8');
  const rules = path.join(folder, 'alerts.yaml');
  writeFileSync(rules, read('alerts.yaml').replaceAll(/for: \w+/g, `for: ${ALERT_WAIT}`));
  return localConfig(read('observability/prometheus.yaml'), {
    api: `127.0.0.1:${metricsPort}`,
    worker: `127.0.0.1:${workerMetricsPort(metricsPort)}`,
    rules,
    intervalS: 1,
  });
}
