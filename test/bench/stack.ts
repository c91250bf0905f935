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
import { queryOnce } from '../support/connection.ts';
import { PROVIDER_SECRETS, SERVICE_ENV } from '../support/provider-event.ts';
import type { Processes } from './cpu.ts';

const RETENTION_MS = 86_400_000;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** What the log of a program has once it is ready. */
const READY = /API ready|worker ready|for the benchmark/;

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
   * Starts a script as a process on this stack, and waits until it is ready. The API and the worker are the compiled
   * ones that `npm start` runs: what `tsx` adds to the code costs at each call. `own` are variables of the environment
   * for this process.
   */
  start(script: string, own?: Readonly<Record<string, string>>): Promise<Started>;
  /** Starts the API and the worker. @returns them and the servers */
  startProduct(own?: Readonly<Record<string, string>>): Promise<Product>;
};

export type Started = { readonly pid: number; readonly log: string; stop(): Promise<void> };
export type Product = { readonly api: Started; readonly worker: Started; readonly processes: Processes };

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
  const urls = await createDatabase(addresses, `bench_${id}`, cleanup);
  const apiPort = await freePort();
  const env = {
    ...process.env,
    ...SERVICE_ENV,
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    // As in the image.
    MALLOC_ARENA_MAX: '2',
    DATABASE_URL: urls.databaseUrl,
    // For the bare programs, which create tables.
    MIGRATION_DATABASE_URL: urls.migrationUrl,
    TEMPORAL_ADDRESS: addresses.temporalAddress,
    TEMPORAL_NAMESPACE: `bench-${id}`,
    PORT: String(apiPort),
    METRICS_PORT: '',
  };
  const temporal = await createNamespace(env, cleanup);
  // The owner's: it also reads the tables of the bare programs.
  const database = new pg.Pool({ connectionString: urls.migrationUrl, max: 2 });
  database.on('error', () => undefined);
  cleanup.push(() => database.end());
  await workflowBundle();
  const { api, worker } = await compiledPrograms(['api', 'worker'], 'own code');
  const start = starter(env, cleanup, { 'api/main.ts': api, 'worker/main.ts': worker });
  const servers = { Temporal: pidsOf('Temporal'), PostgreSQL: pidsOf('PostgreSQL') };
  const startProduct: BenchStack['startProduct'] = async (own) => {
    const product = { api: await start('api/main.ts', own), worker: await start('worker/main.ts') };
    return { ...product, processes: { API: [product.api.pid], worker: [product.worker.pid], ...servers } };
  };
  return {
    ...{ temporal, database, servers, start, startProduct },
    apiUrl: `http://127.0.0.1:${apiPort}`,
    databaseUrl: urls.databaseUrl,
    sealer: createSealer(loadConfig(env, localDirectory).encryptionKeys),
    cardprocSecret: PROVIDER_SECRETS.cardproc,
  };
}

const pidsOf = (name: string): number[] => [readStack()?.processes[name]?.pid ?? []].flat();

const starter =
  (env: NodeJS.ProcessEnv, cleanup: Cleanup, compiled: Readonly<Record<string, string>>): BenchStack['start'] =>
  async (script, own = {}) => {
    const name = path.basename(script === 'api/main.ts' || script === 'worker/main.ts' ? path.dirname(script) : script);
    const logFile = freshLog(path.join(logDirectory, `bench-${name}.log`));
    const members: Member[] = [];
    let lastLog = '';
    const isReady = (log: string): boolean => {
      lastLog = log;
      return READY.test(log);
    };
    const keep = async (member: Member): Promise<void> => {
      members.push(member);
      cleanup.push(member.stop);
    };
    await startService({ name, run: compiled[script] ?? script, env: { ...env, ...own }, logFile, isReady }, keep);
    const stop = async (): Promise<void> => {
      await Promise.all(members.map((member) => member.stop()));
    };
    return { pid: members[0]?.record.pid ?? 0, log: lastLog, stop };
  };

async function createDatabase(server: DatabaseUrls, name: string, cleanup: Cleanup): Promise<DatabaseUrls> {
  await queryOnce(server.migrationUrl, `CREATE DATABASE ${name}`);
  cleanup.push(() => queryOnce(server.migrationUrl, `DROP DATABASE ${name} WITH (FORCE)`));
  const of = (address: string): string => Object.assign(new URL(address), { pathname: `/${name}` }).href;
  const urls = { databaseUrl: of(server.databaseUrl), migrationUrl: of(server.migrationUrl) };
  await migrate(urls);
  return urls;
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
