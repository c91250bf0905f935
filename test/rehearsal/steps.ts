/** The steps of `npm run cluster`, in the order of their dependencies. Prints the time of each step. */
import path from 'node:path';
import type { ListrTask } from 'listr2';
import { type DatabaseUrls, migrate } from '../../db/migrate.ts';
import { localDirectory } from '../../process/local/place.ts';
import { connectTemporal } from '../../process/temporal.ts';
import { startEmbeddedPostgres } from '../../scripts/stack/embedded.ts';
import { freePorts } from '../../scripts/stack/port.ts';
import { bundleStep, describePostgres, runSteps, type Start } from '../../scripts/stack/steps.ts';
import { prepareTemporal } from '../../worker/temporal-watch.ts';
import { buildWithGo } from '../support/go-program.ts';
import { createMembers, type Members, PRODUCT_MEMBERS } from './member.ts';
import { DATABASE_CONNECTIONS_MAX, frontendAddress } from './server-config.ts';
import { NAMESPACE, prepareDatabases, serverService } from './temporal-server.ts';

/** Separate from the data of `npm start`, so that both can run at the same time. */
const FOLDER = 'cluster';
export const clusterDirectory = path.join(localDirectory, FOLDER);
export const logDirectory = path.join(clusterDirectory, 'log');

export type Cluster = {
  readonly apiUrls: readonly string[];
  readonly databaseUrl: string;
  readonly migrationUrl: string;
  readonly temporalAddress: string;
  readonly members: Members;
};

type Programs = { readonly server: string; readonly sqlTool: string };
type Findings = {
  programs?: Programs;
  databases?: DatabaseUrls & { readonly serverUrl: string };
  cluster?: Cluster;
};

const VERSION = 'v1.32.0';
const SERVER = { source: 'go.temporal.io/server/cmd/server', version: VERSION, name: 'temporal-server' };
const SQL_TOOL = { source: 'go.temporal.io/server/cmd/tools/sql', version: VERSION, name: 'temporal-sql-tool' };
/** Each of the server's four services listens on two ports. */
const TEMPORAL_PORTS = 8;
const TEMPORAL_PORT = 17_233;

/** Starts everything. The supervisor knows each process, so it can stop them all when a step fails. */
export async function startCluster(start: Start): Promise<Cluster> {
  const steps: ListrTask<Findings>[] = [
    {
      title: 'Programs',
      task: (_, task) => task.newListr([programStep(start), postgresStep(start), bundleStep], { concurrent: true }),
    },
    { title: 'Schemas', task: schemaStep },
    {
      title: 'Temporal',
      task: (findings, task) => temporalStep(start, findings).then((title) => void Object.assign(task, { title })),
    },
    { title: 'Two APIs and two workers', task: ({ cluster }) => startProduct(need(cluster)) },
  ];
  const findings = await runSteps<Findings>(steps, {});
  return need(findings.cluster);
}

function programStep({ signal }: Start): ListrTask<Findings> {
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

function postgresStep({ config, supervisor }: Start): ListrTask<Findings> {
  return {
    title: 'PostgreSQL',
    task: async (findings, task) => {
      const settings = { max_connections: String(DATABASE_CONNECTIONS_MAX) };
      const { cluster, urls } = await startEmbeddedPostgres(supervisor, {
        ...config,
        folder: FOLDER,
        settings,
      });
      task.title = describePostgres(cluster);
      findings.databases = { serverUrl: cluster.serverUrl, ...urls };
    },
  };
}

async function schemaStep({ programs, databases }: Findings): Promise<void> {
  const { serverUrl, ...urls } = need(databases);
  await Promise.all([migrate(urls), prepareDatabases(need(programs).sqlTool, serverUrl)]);
}

/** @returns the title to show for this step */
async function temporalStep({ env, config, supervisor }: Start, findings: Findings): Promise<string> {
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
  const apiPorts = await freePorts(2, config.port);
  const ownEnv = {
    ...env,
    HOST: '127.0.0.1',
    METRICS_PORT: '',
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporalAddress,
    TEMPORAL_NAMESPACE: NAMESPACE,
  };
  const members = createMembers(
    { env: ownEnv, apiPorts, logDirectory, logLevel: config.logLevel, temporal },
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
  };
  return `Temporal cluster on port ${ports[0]}`;
}

async function startProduct({ members }: Cluster): Promise<void> {
  await Promise.all(PRODUCT_MEMBERS.map((name) => members.start(name)));
}

/** The result of an earlier step. */
function need<Found>(found: Found | undefined): Found {
  if (found === undefined) throw new Error('An earlier step was skipped.');
  return found;
}
