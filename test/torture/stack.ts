/**
 * The whole service under torture: PostgreSQL, Temporal, API and worker as processes of their own, each connection
 * through a proxy, and each process within reach of kill, stop and restart.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type DatabaseUrls, migrate } from '../../db/migrate.ts';
import { localDirectory, repositoryRoot } from '../../process/place.ts';
import { acquireDevServer } from '../../scripts/stack/binary.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { type Cluster, ensureDatabase, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { startTemporal, type TemporalServer } from '../../scripts/stack/temporal.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';
import { PROVIDER_SECRETS } from './provider.ts';
import { type Network, startNetwork } from './proxy.ts';

export const PARTS = ['api', 'worker', 'temporal', 'postgres'] as const;
export type Part = (typeof PARTS)[number];

export type TortureStack = {
  readonly baseUrl: string;
  /** Past the proxies: what checks and the oracle use is never disturbed by them. */
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly network: Network;
  readonly folder: string;
  /** SIGKILL to every process of the part; nothing is flushed. */
  kill(part: Part): Promise<void>;
  start(part: Part, env?: Readonly<Record<string, string>>): Promise<void>;
  /** SIGSTOP, and SIGCONT. */
  pause(part: Part): void;
  resume(part: Part): void;
  isRunning(part: Part): boolean;
  untilReady(): Promise<void>;
  close(): Promise<void>;
};

const READY_TIMEOUT_MS = 90_000;
const READY_POLL_MS = 100;
/** What listens on a port must be gone before the next one can. */
const PORT_RELEASE_MS = 200;
const RATE_LIMIT_PER_MINUTE = '1000000';

/** @param env further environment of API and worker */
export async function startTortureStack(env: Readonly<Record<string, string>> = {}): Promise<TortureStack> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'settlement-torture-'));
  await chmod(folder, 0o755);
  const program = await postgresProgram(async () => folder);
  const temporalProgram = await acquireDevServer({
    env: process.env,
    binDirectory: path.join(localDirectory, 'bin'),
    onProgress: () => undefined,
  });
  const [postgresPort, temporalPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const network = await startNetwork({
    'api-postgres': postgresPort,
    'worker-postgres': postgresPort,
    'api-temporal': temporalPort,
    'worker-temporal': temporalPort,
  });
  const baseUrl = `http://127.0.0.1:${apiPort}`;
  const children: Partial<Record<Part, ChildProcess>> = {};
  let cluster: Cluster | undefined;
  let temporal: TemporalServer | undefined;
  let urls: DatabaseUrls = { databaseUrl: '', migrationUrl: '' };

  const launch = (part: 'api' | 'worker', more: Readonly<Record<string, string>>): void => {
    const database = new URL(urls.databaseUrl);
    database.port = String(network.port(`${part}-postgres`));
    const log = openSync(path.join(folder, `${part}.log`), 'a');
    children[part] = spawn(process.execPath, ['--import', 'tsx', `${part}/main.ts`], {
      cwd: repositoryRoot,
      env: {
        ...process.env,
        ...env,
        RUNTIME_ENVIRONMENT: 'local-sandbox',
        DATABASE_URL: database.href,
        TEMPORAL_ADDRESS: `127.0.0.1:${network.port(`${part}-temporal`)}`,
        PORT: String(apiPort),
        CARDPROC_WEBHOOK_SECRET: PROVIDER_SECRETS.cardproc,
        BANKLEDGER_WEBHOOK_SECRET: PROVIDER_SECRETS.bankledger,
        WEBHOOK_ALLOW_LOCAL_TARGETS: 'true',
        RATE_LIMIT_PER_MINUTE,
        LOG_LEVEL: 'warn',
        ...more,
      },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
  };
  const start: TortureStack['start'] = async (part, more = {}) => {
    if (part === 'api' || part === 'worker') launch(part, more);
    else if (part === 'postgres') {
      cluster = await startCluster({ program, directory: path.join(folder, 'postgres'), wishedPort: postgresPort });
      urls = await ensureDatabase(cluster, 'settlement');
    } else {
      temporal = await startTemporal({
        program: temporalProgram,
        searchAttributes: Object.keys(SEARCH_ATTRIBUTES),
        logFile: path.join(folder, 'temporal.log'),
        databaseFile: path.join(folder, 'temporal.db'),
        wishedPort: temporalPort,
      });
    }
  };
  const pidsOf = (part: Part): number[] => {
    if (part === 'api' || part === 'worker') return [children[part]?.pid ?? 0].filter((pid) => pid > 0);
    const pid = (part === 'postgres' ? cluster : temporal)?.process.pid;
    if (pid === undefined) return [];
    return part === 'postgres' ? [pid, ...childrenOf(pid)] : [pid];
  };
  const signal = (part: Part, name: NodeJS.Signals): void => {
    for (const pid of pidsOf(part)) sendSignal(pid, name);
  };
  const stack: TortureStack = {
    baseUrl,
    get databaseUrl() {
      return urls.databaseUrl;
    },
    temporalAddress: `127.0.0.1:${temporalPort}`,
    network,
    folder,
    start,
    pause: (part) => signal(part, 'SIGSTOP'),
    resume: (part) => signal(part, 'SIGCONT'),
    isRunning: (part) => pidsOf(part).some((pid) => sendSignal(pid, 0)),
    kill: async (part) => {
      const child = children[part];
      const ended = child && child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      signal(part, 'SIGKILL');
      await ended;
      await delay(PORT_RELEASE_MS);
    },
    untilReady: () => untilReady(baseUrl),
    close: async () => {
      for (const part of PARTS) stack.resume(part);
      await Promise.all([stack.kill('api'), stack.kill('worker')]);
      await temporal?.stop();
      await cluster?.stop();
      network.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await Promise.all([start('postgres'), start('temporal')]);
  await migrate(urls);
  await Promise.all([start('api'), start('worker')]);
  await stack.untilReady();
  return stack;
}

/** Of the process itself; empty when it has none or has gone. */
function childrenOf(pid: number): number[] {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

/** @returns whether the process is there */
function sendSignal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

async function untilReady(baseUrl: string): Promise<void> {
  const end = Date.now() + READY_TIMEOUT_MS;
  for (;;) {
    const ready = await fetch(`${baseUrl}/health/ready`, { signal: AbortSignal.timeout(1_000) }).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return;
    if (Date.now() > end) throw new Error('the API did not become ready');
    await delay(READY_POLL_MS);
  }
}
