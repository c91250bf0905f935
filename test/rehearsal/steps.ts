/** The steps of `npm run cluster`, in the order of their dependencies. Prints the time of each step. */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { ListrTask } from 'listr2';
import { loadConfig } from '../../config/load.ts';
import { type DatabaseUrls, migrate } from '../../db/migrate.ts';
import { localDirectory } from '../../process/local/place.ts';
import { connectTemporal } from '../../process/temporal.ts';
import { compiledPrograms } from '../../scripts/stack/compiled.ts';
import { startEmbeddedPostgres } from '../../scripts/stack/embedded.ts';
import { stopInOrder, withDefaults } from '../../scripts/stack/lifetime.ts';
import { reachableDirectory } from '../../scripts/stack/outside.ts';
import { freePorts } from '../../scripts/stack/port.ts';
import { checkMachine } from '../../scripts/stack/preflight.ts';
import { runSteps } from '../../scripts/stack/step-list.ts';
import { bundleStep, describePostgres, type Start } from '../../scripts/stack/steps.ts';
import { createSupervisor } from '../../scripts/stack/supervisor.ts';
import { prepareTemporal } from '../../worker/temporal-watch.ts';
import { buildWithGo } from '../support/go-program.ts';
import { createFailover, type Failover, startPool } from './database.ts';
import { createMembers, type Members, PRODUCT_MEMBERS } from './member.ts';
import { buildReleased, type Released, whyNotReleased } from './released.ts';
import { DATABASE_CONNECTIONS_MAX, frontendAddress } from './server-config.ts';
import { NAMESPACE, prepareDatabases, serverService } from './temporal-server.ts';

/** Separate from the data of `npm start`, so that both can run at the same time. */
const FOLDER = 'cluster';
/** A rehearsal begins with the schema of the released version, and its PostgreSQL does not survive it. */
const REHEARSAL_FOLDER = 'rehearsal';
export const clusterDirectory = path.join(localDirectory, FOLDER);
export const logDirectory = path.join(clusterDirectory, 'log');

export type Cluster = {
  readonly apiUrls: readonly string[];
  readonly databaseUrl: string;
  readonly migrationUrl: string;
  readonly temporalAddress: string;
  readonly members: Members;
  /** Migrates. Every process that is started from now on is of this version. */
  upgrade(): Promise<void>;
  /** What the rehearsal goes without, and why. */
  readonly without: readonly string[];
};

type Programs = { readonly server: string; readonly sqlTool: string };
type Findings = {
  programs?: Programs;
  product?: { readonly api: string; readonly worker: string };
  released?: Released;
  databases?: DatabaseUrls & { readonly serverUrl: string };
  failover?: Failover;
  without: string[];
  cluster?: Cluster;
};

export type ClusterStart = Start & { readonly isRehearsal: boolean };

/** Far above what two processes can serve: one partner sends more than the usual limit allows. */
const UNLIMITED_PER_MINUTE = '1000000';

type Options = Pick<ClusterStart, 'isRehearsal'> & {
  /** Whether partners have no rate limit. */
  readonly isUnlimited: boolean;
  /** What a signal is reported as; undefined when it is the usual end. */
  readonly interrupted: Error | undefined;
};

export type Opened = ClusterStart & {
  readonly cluster: Cluster;
  /** Stops all processes in order, and ends this one: with 1 if there is an error. */
  stop(error?: unknown): void;
};

/**
 * Starts a cluster for `run`. If that fails, or a signal comes, everything is stopped in order and this process ends.
 */
export async function withCluster(
  given: NodeJS.ProcessEnv,
  { isRehearsal, isUnlimited, interrupted }: Options,
  run: (opened: Opened) => Promise<void>,
): Promise<void> {
  await checkMachine(console.log);
  const env = withDefaults({ ...given, ...(isUnlimited && { RATE_LIMIT_PER_MINUTE: UNLIMITED_PER_MINUTE }) });
  const config = loadConfig({ ...env, DATABASE_URL: 'postgresql://127.0.0.1' }, localDirectory);
  const supervisor = await createSupervisor({ embedsDatabase: !isRehearsal, directory: clusterDirectory });
  const { signal, stop } = stopInOrder(supervisor, interrupted);
  const start = { env, config, supervisor, signal, isRehearsal };
  try {
    await run({ ...start, cluster: await startCluster(start), stop });
  } catch (error) {
    stop(error);
  }
}

const VERSION = 'v1.32.0';
const SERVER = { source: 'go.temporal.io/server/cmd/server', version: VERSION, name: 'temporal-server' };
const SQL_TOOL = { source: 'go.temporal.io/server/cmd/tools/sql', version: VERSION, name: 'temporal-sql-tool' };
/** Each of the server's four services listens on two ports. */
const TEMPORAL_PORTS = 8;
const TEMPORAL_PORT = 17_233;

/** Starts everything. The supervisor knows each process, so it can stop them all when a step fails. */
async function startCluster(start: ClusterStart): Promise<Cluster> {
  const steps: ListrTask<Findings>[] = [
    {
      title: 'Programs',
      task: (_, task) =>
        task.newListr([programStep(start), productStep(start), postgresStep(start), bundleStep], { concurrent: true }),
    },
    { title: 'Schemas', task: schemaStep },
    {
      title: 'Temporal',
      task: (findings, task) => temporalStep(start, findings).then((title) => void Object.assign(task, { title })),
    },
    { title: 'Three APIs and three workers', task: ({ cluster }) => startProduct(need(cluster)) },
  ];
  const findings = await runSteps<Findings>(steps, { without: [] });
  return need(findings.cluster);
}

function productStep({ isRehearsal }: ClusterStart): ListrTask<Findings> {
  return {
    title: 'APIs and workers',
    task: async (findings) => {
      findings.product = await compiledPrograms(['api', 'worker'], 'own code');
      if (!isRehearsal) return;
      const missing = await whyNotReleased();
      if (missing !== undefined) throw new Error(missing);
      findings.released = await buildReleased();
    },
  };
}

function programStep({ signal }: ClusterStart): ListrTask<Findings> {
  return {
    title: 'Temporal server',
    task: async (findings, task) => {
      task.output = 'built with Go once; this takes some minutes';
      // One after the other: the second build reuses most of what the first has compiled.
      const server = await buildWithGo(SERVER, signal);
      findings.programs = { server, sqlTool: await buildWithGo(SQL_TOOL, signal) };
    },
  };
}

function postgresStep({ config, supervisor, isRehearsal }: ClusterStart): ListrTask<Findings> {
  return {
    title: 'PostgreSQL',
    task: async (findings, task) => {
      const settings = { max_connections: String(DATABASE_CONNECTIONS_MAX) };
      if (isRehearsal) await removeRehearsal();
      const folder = isRehearsal ? REHEARSAL_FOLDER : FOLDER;
      const { cluster, urls, directory } = await startEmbeddedPostgres(supervisor, { ...config, folder, settings });
      task.title = describePostgres(cluster);
      findings.databases = { serverUrl: cluster.serverUrl, ...urls };
      if (!isRehearsal) return;
      findings.failover = await createFailover(supervisor, { cluster, directory, settings });
      const throughAddress = findings.failover.through;
      findings.databases = {
        serverUrl: throughAddress(cluster.serverUrl),
        databaseUrl: throughAddress(urls.databaseUrl),
        migrationUrl: throughAddress(urls.migrationUrl),
      };
    },
  };
}

/** The data of an earlier rehearsal. */
async function removeRehearsal(): Promise<void> {
  for (const home of [localDirectory, await reachableDirectory()])
    await rm(path.join(home, REHEARSAL_FOLDER), { recursive: true, force: true });
}

async function schemaStep({ programs, databases, released }: Findings): Promise<void> {
  const { serverUrl, ...urls } = need(databases);
  await Promise.all([(released?.migrate ?? migrate)(urls), prepareDatabases(need(programs).sqlTool, serverUrl)]);
}

/** @returns the title to show for this step */
async function temporalStep({ env, config, supervisor }: ClusterStart, findings: Findings): Promise<string> {
  const { serverUrl, databaseUrl, migrationUrl } = need(findings.databases);
  const ports = await freePorts(TEMPORAL_PORTS, TEMPORAL_PORT);
  const temporalAddress = frontendAddress(ports);
  const server = {
    program: need(findings.programs).server,
    ports,
    databaseServerUrl: serverUrl,
    logFile: path.join(logDirectory, 'temporal.log'),
  };
  const temporal = await serverService(path.join(clusterDirectory, 'temporal'), server);
  const apiPorts = await freePorts(3, config.port);
  const { failover, released, without, product } = findings;
  const pool = failover && (await startPool(supervisor, databaseUrl));
  if (typeof pool === 'string') without.push(`a pooler: ${pool}`);
  const ownEnv = {
    ...env,
    HOST: '127.0.0.1',
    METRICS_PORT: '',
    DATABASE_URL: databaseUrl,
    ...(typeof pool === 'object' && pool),
    TEMPORAL_ADDRESS: temporalAddress,
    TEMPORAL_NAMESPACE: NAMESPACE,
  };
  let started = released?.programs ?? need(product);
  const database = failover ?? NEVER_KILLED;
  const members = createMembers(
    { env: ownEnv, apiPorts, logDirectory, temporal, database, programs: () => started },
    supervisor,
  );
  await members.start('Temporal');
  const client = connectTemporal({
    ...config,
    temporal: { connectionOptions: { address: temporalAddress }, namespace: NAMESPACE },
    payloadKeys: undefined,
  });
  await prepareTemporal(client).finally(client.close);
  findings.cluster = {
    apiUrls: apiPorts.map((port) => `http://127.0.0.1:${port}`),
    databaseUrl,
    migrationUrl,
    temporalAddress,
    members,
    upgrade: async () => {
      await migrate({ databaseUrl, migrationUrl });
      started = need(product);
    },
    without,
  };
  return `Temporal cluster on port ${ports[0]}`;
}

const NEVER_KILLED = {
  kill: () => Promise.reject(new Error('only a rehearsal kills PostgreSQL')),
  replace: () => Promise.resolve(),
};

async function startProduct({ members }: Cluster): Promise<void> {
  await Promise.all(PRODUCT_MEMBERS.map((name) => members.start(name)));
}

/** The result of an earlier step. */
function need<Found>(found: Found | undefined): Found {
  if (found === undefined) throw new Error('An earlier step was skipped.');
  return found;
}
