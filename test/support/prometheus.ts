/**
 * Prometheus and promtool for the tests and the drills. They are looked for in the folder that PROMETHEUS_PATH names,
 * on the PATH, and in `.local/bin`; on Debian, its package is downloaded there, and nothing is installed in the system.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { z } from 'zod';
import { localDirectory } from '../../process/local/place.ts';
import { workerMetricsPort } from '../../process/metrics.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { findOnPath, isExecutable } from '../../scripts/stack/program-path.ts';
import { stretched } from './patience.ts';
import { until } from './wait.ts';

type Programs = { readonly prometheus: string; readonly promtool: string };

const START_TIMEOUT_MS = stretched(60_000);

/** Undefined where there is no Prometheus and none can be had. */
export async function findPrometheus(): Promise<Programs | undefined> {
  const onPath = findOnPath('prometheus', process.env);
  const kept = path.join(localDirectory, 'bin', 'prometheus-by-debian');
  for (const folder of [process.env['PROMETHEUS_PATH'], onPath && path.dirname(onPath), kept]) {
    const found = folder && programsIn(folder);
    if (found) return found;
  }
  return await fromDebian(kept).catch(() => undefined);
}

function programsIn(folder: string): Programs | undefined {
  const programs = { prometheus: path.join(folder, 'prometheus'), promtool: path.join(folder, 'promtool') };
  return Object.values(programs).every(isExecutable) ? programs : undefined;
}

async function fromDebian(kept: string): Promise<Programs | undefined> {
  if (!findOnPath('apt-get', process.env)) return undefined;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'prometheus-'));
  try {
    const download = () => execa('apt-get', ['download', 'prometheus'], { cwd: folder });
    // A machine that was never updated knows no package.
    await download().catch(async () => {
      await execa('apt-get', ['update']);
      await download();
    });
    const archive = (await execa('ls', { cwd: folder })).stdout;
    await execa('dpkg-deb', ['-x', archive, 'content'], { cwd: folder });
    mkdirSync(path.dirname(kept), { recursive: true });
    const copy = `${kept}.${process.pid}`;
    await execa('cp', ['-r', path.join(folder, 'content/usr/bin'), copy]);
    try {
      renameSync(copy, kept);
    } catch {
      // Another process was faster.
      rmSync(copy, { recursive: true });
    }
    return programsIn(kept);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const Alerts = z.object({
  data: z.object({ alerts: z.array(z.object({ labels: z.record(z.string(), z.string()), state: z.string() })) }),
});
const Answer = z.object({
  status: z.string(),
  error: z.string().optional(),
  data: z.object({ result: z.array(z.object({ metric: z.record(z.string(), z.string()) })) }).optional(),
});

export type Prometheus = {
  readonly url: string;
  /** The names of the alerts in this state. */
  alerts(state: 'pending' | 'firing'): Promise<string[]>;
  /** The labels of the series that an expression has now. @throws Error with Prometheus's fault */
  query(expr: string): Promise<Record<string, string>[]>;
  stop(): Promise<void>;
};

/** A port for the API's metrics, with the one after it free for the worker's. */
export async function freeMetricsPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if ((await freePort(workerMetricsPort(port))) === workerMetricsPort(port)) return port;
  }
}

/** @param config the text of its configuration. Its data is in a temporary folder, and is deleted at the end. */
export async function startPrometheus({ prometheus }: Programs, config: string): Promise<Prometheus> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'prometheus-'));
  writeFileSync(path.join(folder, 'prometheus.yml'), config);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    prometheus,
    [
      `--config.file=${path.join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${path.join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const read = async (page: string): Promise<unknown> => (await fetch(`${url}${page}`)).json();
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with exit code ${child.exitCode}.`);
    return await fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  try {
    await until('answer of Prometheus', isReady, { timeoutMs: START_TIMEOUT_MS });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url,
    alerts: async (state) =>
      Alerts.parse(await read('/api/v1/alerts')).data.alerts.flatMap(({ labels, state: of }) =>
        of === state ? [labels['alertname'] ?? ''] : [],
      ),
    query: async (expr) => {
      const { error, data } = Answer.parse(await read(`/api/v1/query?query=${encodeURIComponent(expr)}`));
      if (!data) throw new Error(`${expr}: ${error}`);
      return data.result.map(({ metric }) => metric);
    },
    stop,
  };
}

/**
 * The configuration of docker-compose.yml's Prometheus with these addresses in place of its own.
 *
 * @param intervalS between two scrapes, and between two evaluations of the rules
 */
export const localConfig = (
  config: string,
  given: { readonly api: string; readonly worker: string; readonly rules: string; readonly intervalS: number },
): string =>
  config
    .replace("'api:9464'", `'${given.api}'`)
    .replace("'worker:9465'", `'${given.worker}'`)
    .replace('/etc/prometheus/alerts.yaml', given.rules)
    .replaceAll('interval: 15s', `interval: ${given.intervalS}s`);
