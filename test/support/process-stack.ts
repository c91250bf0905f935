/**
 * The service as separate processes, as it is deployed: a durable PostgreSQL, a Temporal server on a file, an API and
 * a worker, each of which a test can kill and start again on the same addresses.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { vi } from 'vitest';
import { type DatabaseUrls, migrate } from '../../db/migrate.ts';
import { localDirectory, repositoryRoot } from '../../process/place.ts';
import { acquireDevServer } from '../../scripts/stack/binary.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { type Cluster, ensureDatabase, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { startTemporal, type TemporalServer } from '../../scripts/stack/temporal.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';

export const PARTS = ['api', 'worker', 'temporal', 'postgres'] as const;
export type Part = (typeof PARTS)[number];

export type ProcessStack = {
  readonly baseUrl: string;
  readonly databaseUrl: string;
  /** Sends SIGKILL: the process cannot clean up. */
  kill(part: Part): Promise<void>;
  start(part: Part): Promise<void>;
  close(): Promise<void>;
};

const READY_TIMEOUT_MS = 60_000;

export async function startProcessStack(): Promise<ProcessStack> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'settlement-faults-'));
  await chmod(folder, 0o755);
  const program = await postgresProgram(async () => folder);
  const temporalProgram = await acquireDevServer({
    env: process.env,
    binDirectory: path.join(localDirectory, 'bin'),
    onProgress: () => undefined,
  });
  const [postgresPort, temporalPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const baseUrl = `http://127.0.0.1:${apiPort}`;
  let cluster: Cluster | undefined;
  let temporal: TemporalServer | undefined;
  const children: Partial<Record<Part, ChildProcess>> = {};
  let urls: DatabaseUrls = { databaseUrl: '', migrationUrl: '' };

  const startPostgres = async () => {
    cluster = await startCluster({ program, directory: path.join(folder, 'postgres'), wishedPort: postgresPort });
    urls = await ensureDatabase(cluster, 'settlement');
  };
  const launch = (part: 'api' | 'worker'): void => {
    const env = {
      ...process.env,
      RUNTIME_ENVIRONMENT: 'local-sandbox',
      DATABASE_URL: urls.databaseUrl,
      TEMPORAL_ADDRESS: `127.0.0.1:${temporalPort}`,
      PORT: String(apiPort),
      LOG_LEVEL: 'warn',
    };
    const log = openSync(path.join(folder, `${part}.log`), 'a');
    children[part] = spawn(process.execPath, ['--import', 'tsx', `${part}/main.ts`], {
      cwd: repositoryRoot,
      env,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
  };
  const start = async (part: Part): Promise<void> => {
    if (part === 'postgres') await startPostgres();
    else if (part === 'temporal') {
      temporal = await startTemporal({
        program: temporalProgram,
        searchAttributes: Object.keys(SEARCH_ATTRIBUTES),
        logFile: path.join(folder, 'temporal.log'),
        databaseFile: path.join(folder, 'temporal.db'),
        wishedPort: temporalPort,
      });
    } else launch(part);
  };
  const killChild = async (child: ChildProcess | undefined): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };

  await Promise.all([start('postgres'), start('temporal')]);
  await migrate(urls);
  await Promise.all([start('api'), start('worker')]);
  await untilReady(baseUrl);
  return {
    baseUrl,
    databaseUrl: urls.databaseUrl,
    start,
    kill: async (part) => {
      if (part === 'api' || part === 'worker') return await killChild(children[part]);
      const server = part === 'postgres' ? cluster : temporal;
      if (server) process.kill(server.process.pid, 'SIGKILL');
      // The next process can listen only after the old one has released the port.
      await delay(200);
    },
    close: async () => {
      await Promise.all([killChild(children.api), killChild(children.worker)]);
      await temporal?.stop();
      await cluster?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function untilReady(baseUrl: string): Promise<void> {
  const isReady = async () => (await fetch(`${baseUrl}/health/ready`).catch(() => undefined))?.ok;
  await vi.waitUntil(isReady, { timeout: READY_TIMEOUT_MS, interval: 100 });
}
