/**
 * API and worker for one benchmark, on the PostgreSQL and Temporal of a running stack. The benchmark gets a database
 * and a namespace of its own, which are deleted afterwards. So neither rate limits nor earlier data affect the figures.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { loadConfig } from '../../config/load.ts';
import { type DatabaseUrls, migrate } from '../../db/migrate.ts';
import { createSealer, type Sealer } from '../../db/seal.ts';
import { EXIT } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { findRunningStack, readStack } from '../../process/local/running-stack.ts';
import { connectTemporal, type TemporalClient } from '../../process/temporal.ts';
import { borrowStack } from '../../scripts/stack/borrowed.ts';
import { compiledPrograms } from '../../scripts/stack/compiled.ts';
import { logDirectory } from '../../scripts/stack/embedded.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { freshLog, startService } from '../../scripts/stack/service.ts';
import type { Member } from '../../scripts/stack/supervisor.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { prepareTemporal } from '../../worker/temporal-watch.ts';
import type { Processes } from './cpu.ts';

const RETENTION_MS = 86_400_000;
const UNLIMITED_PER_MINUTE = '1000000';
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export type BenchStack = {
  readonly apiUrl: string;
  readonly databaseUrl: string;
  readonly temporal: TemporalClient;
  readonly database: pg.Pool;
  /** Opens and seals what the stack's API stores. */
  readonly sealer: Sealer;
  readonly cardprocSecret: string;
  /** Temporal and PostgreSQL. */
  readonly servers: Processes;
  /**
   * Starts a script as a process on this stack. It is ready once its log contains `readyText`. The API and the worker
   * are the compiled ones that `npm start` runs: what `tsx` adds to the code costs at each call. `own` are variables of
   * the environment for this process.
   */
  start(name: string, script: string, readyText: string, own?: Readonly<Record<string, string>>): Promise<Started>;
};

export type Started = {
  readonly pid: number;
  readonly log: string;
  readonly startedAtMs: number;
  stop(): Promise<void>;
};

/** What to stop and delete after the benchmark, last first. */
type Cleanup = (() => Promise<unknown>)[];

/** Runs a benchmark on a stack of its own and removes the stack afterwards, also when a signal ends the benchmark. */
export async function withBenchStack<T>(run: (stack: BenchStack) => Promise<T>): Promise<T> {
  const borrowed = await borrowStack(undefined, console.error);
  const cleanup: Cleanup = [borrowed.giveBack];
  const cleanUp = async (): Promise<void> => {
    for (const step of cleanup.splice(0).reverse()) await step().catch((error: unknown) => console.error(error));
  };
  // Its processes are detached, so that no signal of the terminal reaches them.
  const interrupt = () => void cleanUp().finally(() => process.exit(EXIT.refused));
  for (const signal of SIGNALS) process.once(signal, interrupt);
  try {
    return await run(await prepare(cleanup));
  } finally {
    await cleanUp();
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

async function prepare(cleanup: Cleanup): Promise<BenchStack> {
  const addresses = findRunningStack();
  if (!addresses) throw new Error('The stack that the benchmark needs has stopped.');
  const id = randomBytes(4).toString('hex');
  const server = { databaseUrl: addresses.databaseUrl, migrationUrl: addresses.migrationUrl };
  const urls = await createDatabase(server, `bench_${id}`, cleanup);
  const apiPort = await freePort();
  const cardprocSecret = randomBytes(32).toString('hex');
  const env = {
    ...process.env,
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    DATABASE_URL: urls.databaseUrl,
    // For the bare programs, which create tables.
    MIGRATION_DATABASE_URL: urls.migrationUrl,
    TEMPORAL_ADDRESS: addresses.temporalAddress,
    TEMPORAL_NAMESPACE: `bench-${id}`,
    PORT: String(apiPort),
    METRICS_PORT: '',
    RATE_LIMIT_PER_MINUTE: UNLIMITED_PER_MINUTE,
    CARDPROC_WEBHOOK_SECRET: cardprocSecret,
    WEBHOOK_ALLOW_LOCAL_TARGETS: 'true',
  };
  const temporal = await createNamespace(env, cleanup);
  // The owner's: it also reads the tables of the bare programs.
  const database = new pg.Pool({ connectionString: urls.migrationUrl, max: 2 });
  database.on('error', () => undefined);
  cleanup.push(() => database.end());
  await workflowBundle();
  const { api, worker } = await compiledPrograms(['api', 'worker'], 'own code');
  const start = starter(env, cleanup, { 'api/main.ts': api, 'worker/main.ts': worker });
  return {
    apiUrl: `http://127.0.0.1:${apiPort}`,
    databaseUrl: urls.databaseUrl,
    temporal,
    database,
    sealer: createSealer(loadConfig(env, localDirectory).encryptionKeys),
    cardprocSecret,
    servers: { Temporal: pidsOf('Temporal'), PostgreSQL: pidsOf('PostgreSQL') },
    start,
  };
}

const pidsOf = (name: string): number[] => [readStack()?.processes[name]?.pid ?? []].flat();

const starter =
  (env: NodeJS.ProcessEnv, cleanup: Cleanup, compiled: Readonly<Record<string, string>>): BenchStack['start'] =>
  async (name, script, readyText, own = {}) => {
    const logFile = freshLog(path.join(logDirectory, `bench-${name}.log`));
    const members: Member[] = [];
    const startedAtMs = Date.now();
    let lastLog = '';
    const isReady = (log: string): boolean => {
      lastLog = log;
      return log.includes(readyText);
    };
    await startService(
      { name, run: compiled[script] ?? script, env: { ...env, ...own }, logFile, isReady },
      async (member) => {
        members.push(member);
        cleanup.push(member.stop);
      },
    );
    const stop = async (): Promise<void> => {
      await Promise.all(members.map((member) => member.stop()));
    };
    return { pid: members[0]?.record.pid ?? 0, log: lastLog, startedAtMs, stop };
  };

async function createDatabase(server: DatabaseUrls, name: string, cleanup: Cleanup): Promise<DatabaseUrls> {
  const administer = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: server.migrationUrl });
    await client.connect();
    await client.query(statement).finally(() => client.end());
  };
  await administer(`CREATE DATABASE ${name}`);
  cleanup.push(() => administer(`DROP DATABASE ${name} WITH (FORCE)`));
  const [databaseUrl = '', migrationUrl = ''] = [server.databaseUrl, server.migrationUrl].map((address) => {
    const url = new URL(address);
    url.pathname = `/${name}`;
    return url.href;
  });
  await migrate({ databaseUrl, migrationUrl });
  return { databaseUrl, migrationUrl };
}

async function createNamespace(env: NodeJS.ProcessEnv, cleanup: Cleanup): Promise<TemporalClient> {
  const temporal = connectTemporal(loadConfig(env, localDirectory));
  const { namespace } = temporal;
  const { workflowService, operatorService } = temporal.client.connection;
  await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs(RETENTION_MS) });
  cleanup.push(async () => {
    await operatorService.deleteNamespace({ namespace });
    await temporal.close();
  });
  await prepareTemporal(temporal);
  return temporal;
}
