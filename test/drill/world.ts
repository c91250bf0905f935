/** What the drills break: the service as separate processes, a partner that uses it, and a Prometheus that watches. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import pg from 'pg';
import { CommandError, EXIT } from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { workerMetricsPort } from '../../process/metrics.ts';
import { type Partner, signUp } from '../../scripts/sandbox/partner.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { type ProcessStack, startProcessStack } from '../support/process-stack.ts';
import { findPrometheus, localConfig, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { SERVICE_ENV } from '../torture/run.ts';

const POLL_MS = 250;
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
    await until('scrape of both processes', SCRAPE_TIMEOUT_MS, isScraped);
    const partner = await signUp({ baseUrl: stack.baseUrl });
    return { stack, prometheus, partner, close, ...toolsOf(stack) };
  } catch (error) {
    await close();
    throw error;
  }
}

const toolsOf = (stack: ProcessStack): Pick<World, 'ops' | 'sql' | 'log'> => ({
  ops: async (args) => {
    const { exitCode = 70, all } = await execa(process.execPath, [stack.programFile('ops'), ...args], {
      env: { ...stack.env, NO_COLOR: '1' },
      reject: false,
      all: true,
    });
    return { exitCode, text: all };
  },
  sql: async (statement, values = []) => {
    const owner = new pg.Client({ connectionString: stack.migrationUrl });
    await owner.connect();
    try {
      return (await owner.query(statement, [...values])).rows;
    } finally {
      await owner.end();
    }
  },
  log: (program, ...parts) =>
    readFileSync(path.join(stack.folder, `${program}.log`), 'utf8')
      .split('\n')
      .filter((line) => parts.every((part) => line.includes(part))),
});

/** The worker's port is the one after the API's. */
async function freeMetricsPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if ((await freePort(workerMetricsPort(port))) === workerMetricsPort(port)) return port;
  }
}

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

/**
 * Asks until there is an answer.
 *
 * @param what ends the sentence of the error
 */
export async function until<Found>(
  what: string,
  timeoutMs: number,
  ask: () => Promise<Found | undefined | false>,
): Promise<Found> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`After ${timeoutMs / 1_000} s there was still no ${what}.`);
    await delay(POLL_MS);
  }
}
