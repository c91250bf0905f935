/** The steps of `npm start`, in the order of their dependencies. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ListrTask } from 'listr2';
import { type Config, localUrl } from '../../config/load.ts';
import { migrate } from '../../db/migrate.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { compiledPrograms } from './compiled.ts';
import { logDirectory, startEmbeddedPostgres, startEmbeddedTemporal } from './embedded.ts';
import { freePort } from './port.ts';
import type { Cluster } from './postgres.ts';
import { apiService, workerService } from './product.ts';
import { type ServiceOptions, startService } from './service.ts';
import { runSteps } from './step-list.ts';
import type { Supervisor } from './supervisor.ts';

/** What the steps find out for later steps. */
export type Findings = {
  databaseUrl: string;
  /** Of the role that owns the tables. */
  migrationUrl: string;
  /** Undefined when the database is not the embedded one. */
  dataDirectory: string | undefined;
  temporalAddress: string;
  /** Undefined when Temporal is not the embedded one. */
  temporalUiUrl: string | undefined;
  programs: { readonly api: string; readonly worker: string };
  apiPort: number;
};

/** What the steps of a stack are given. */
export type Start = {
  readonly env: NodeJS.ProcessEnv;
  readonly config: Config;
  readonly supervisor: Supervisor;
  readonly signal: AbortSignal;
};

const SERVICE_ATTEMPTS = 3;
const API_LOG = path.join(logDirectory, 'api.log');
const WORKER_LOG = path.join(logDirectory, 'worker.log');
const SIDE_BY_SIDE = { concurrent: true } as const;

/** Starts what does not run yet. The supervisor knows each process, so it can stop them all when a step fails. */
export async function startAll(start: Start): Promise<Findings> {
  const findings: Findings = {
    databaseUrl: '',
    migrationUrl: '',
    dataDirectory: undefined,
    temporalAddress: '',
    temporalUiUrl: undefined,
    programs: { api: '', worker: '' },
    apiPort: 0,
  };
  const steps: ListrTask<Findings>[] = [
    {
      title: 'Servers',
      task: (_, task) =>
        task.newListr([postgresStep(start), temporalStep(start), bundleStep, programsStep], SIDE_BY_SIDE),
    },
    { title: 'Migrations', task: (urls) => migrate(urls) },
    serviceStep(start),
  ];
  return await runSteps(steps, findings);
}

function postgresStep({ env, config, supervisor }: Start): ListrTask<Findings> {
  return {
    title: 'PostgreSQL',
    task: async (findings, task) => {
      const named = env['DATABASE_URL'];
      if (named) {
        task.title = 'PostgreSQL of DATABASE_URL';
        findings.databaseUrl = named;
        findings.migrationUrl = env['MIGRATION_DATABASE_URL'] || named;
        return;
      }
      const { cluster, urls, directory } = await startEmbeddedPostgres(supervisor, config);
      task.title = describePostgres(cluster);
      Object.assign(findings, urls);
      findings.dataDirectory = directory;
    },
  };
}

/** The title of the step that has started PostgreSQL. */
export const describePostgres = ({ port, reused }: Cluster): string =>
  `PostgreSQL 18 on port ${port}${reused ? ', taken over from an earlier start' : ''}`;

function temporalStep({ env, supervisor, signal }: Start): ListrTask<Findings> {
  return {
    title: 'Temporal',
    task: async (findings, task) => {
      const named = env['TEMPORAL_ADDRESS'];
      if (named) {
        task.title = 'Temporal of TEMPORAL_ADDRESS';
        findings.temporalAddress = named;
        return;
      }
      const onProgress = (text: string) => {
        task.output = text;
      };
      const server = await startEmbeddedTemporal(supervisor, { env, onProgress, signal });
      task.title = `Temporal on port ${server.port}`;
      findings.temporalAddress = server.address;
      findings.temporalUiUrl = server.uiUrl;
    },
  };
}

/** Built here, so that the worker does not have to build it. */
export const bundleStep = { title: 'Workflow bundle', task: async () => void (await workflowBundle()) };

/** Built here, so that the API and the worker start in half the time. */
const programsStep: ListrTask<Findings> = {
  title: 'Programs',
  task: async (findings) => {
    findings.programs = await compiledPrograms(['api', 'worker'], 'own code');
  },
};

function serviceStep(start: Start): ListrTask<Findings> {
  return {
    title: 'API and worker',
    task: async (findings, task) => {
      await startServices(start, findings, (title) => {
        task.title = title;
      });
    },
  };
}

/**
 * Starts API and worker, both at the same time. Both need the API's port: the sandbox's providers run in the worker and
 * send their events to it.
 */
export async function startServices(
  start: Start,
  findings: Findings,
  onTitle: (title: string) => void = () => undefined,
): Promise<void> {
  const { config, supervisor } = start;
  for (let attempt = 1; ; attempt += 1) {
    // A restart keeps the port.
    findings.apiPort = await freePort(findings.apiPort || config.port);
    const elsewhere = config.port !== 0 && findings.apiPort !== config.port ? `, because ${config.port} is taken` : '';
    onTitle(`API on port ${findings.apiPort}${elsewhere}, and worker`);
    const outcomes = await Promise.allSettled(
      [api(start, findings), worker(start, findings)].map((service) => startService(service, supervisor.keep)),
    );
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (!failed) return;
    // Retry only if another program took the port between the probe and the start.
    if (attempt === SERVICE_ATTEMPTS || !readFileSync(API_LOG, 'utf8').includes('EADDRINUSE')) throw failed.reason;
    await supervisor.stopStage('service');
  }
}

const api = ({ env, config }: Start, findings: Findings): ServiceOptions =>
  apiService({
    env: serviceEnv(env, findings),
    program: findings.programs.api,
    url: localUrl(config.host, findings.apiPort),
    logFile: API_LOG,
  });

const worker = ({ env }: Start, findings: Findings): ServiceOptions =>
  workerService({
    env: serviceEnv(env, findings),
    program: findings.programs.worker,
    logFile: WORKER_LOG,
  });

const serviceEnv = (
  env: NodeJS.ProcessEnv,
  { databaseUrl, temporalAddress, apiPort }: Findings,
): NodeJS.ProcessEnv => ({
  ...env,
  // API and worker do not get the owner's address.
  MIGRATION_DATABASE_URL: '',
  DATABASE_URL: databaseUrl,
  TEMPORAL_ADDRESS: temporalAddress,
  PORT: String(apiPort),
});
