/**
 * `npm start`: the whole service on one machine from nothing but a clone. A PostgreSQL and a Temporal come along unless
 * DATABASE_URL and TEMPORAL_ADDRESS name others. Ctrl-C stops everything in order; after a kill the next start recovers.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { styleText } from 'node:util';
import closeWithGrace from 'close-with-grace';
import { Listr, type ListrTask, PRESET_TIMER } from 'listr2';
import { migrate } from '../db/migrate.ts';
import { workflowBundle } from '../worker/bundle.ts';
import { banner } from './stack/banner.ts';
import { logDirectory, startEmbeddedPostgres, startEmbeddedTemporal } from './stack/embedded.ts';
import { freePort } from './stack/port.ts';
import { type ServiceOptions, startService } from './stack/service.ts';
import { createSupervisor, type Supervisor } from './stack/supervisor.ts';

/** What the steps find out for those after them. */
type Findings = {
  databaseUrl: string;
  /** Undefined when the database is not the embedded one; the same holds for the user interface. */
  dataDirectory: string | undefined;
  temporalAddress: string;
  temporalUiUrl: string | undefined;
  apiPort: number;
};

type Start = { readonly env: NodeJS.ProcessEnv; readonly supervisor: Supervisor; readonly signal: AbortSignal };

const NODE_WANTED = { major: 20, minor: 19 };
const WATCH_MS = 500;
const STOP_TIMEOUT_MS = 90_000;
const DEFAULT_API_PORT = 3_000;
const SERVICE_ATTEMPTS = 3;
const API_LOG = path.join(logDirectory, 'api.log');
const WORKER_LOG = path.join(logDirectory, 'worker.log');
const TIMED = { timer: PRESET_TIMER };
const SIDE_BY_SIDE = { concurrent: true } as const;

async function main(given: NodeJS.ProcessEnv): Promise<void> {
  const startedAt = performance.now();
  checkNode();
  const env = withDefaults(given);
  const supervisor = await createSupervisor({ embedsDatabase: !env['DATABASE_URL'] });
  const { signal, stop } = stopInOrder(supervisor);
  try {
    const findings = await startAll({ env, supervisor, signal });
    const { apiPort, dataDirectory, ...servers } = findings;
    const addresses = { ...servers, apiUrl: `http://127.0.0.1:${apiPort}` };
    supervisor.announce(addresses);
    const seconds = (performance.now() - startedAt) / 1_000;
    say(`\n${banner({ ...addresses, dataDirectory, seconds, runtime: env['RUNTIME_ENVIRONMENT'] ?? '', logDirectory })}\n`);
    watch(supervisor, stop, env);
  } catch (error) {
    stop(error);
  }
}

/** A local sandbox unless the caller says otherwise; there, subscribers on this machine may be called. */
function withDefaults(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const runtime = given['RUNTIME_ENVIRONMENT'] || 'local-sandbox';
  const sandbox = runtime === 'local-sandbox' ? { WEBHOOK_ALLOW_LOCAL_TARGETS: 'true' } : {};
  return { ...sandbox, ...given, RUNTIME_ENVIRONMENT: runtime };
}

/** Stops the stack once, whatever asks for it first: a signal, a step that failed, a process that died. */
function stopInOrder(supervisor: Supervisor) {
  const aborter = new AbortController();
  let failure: unknown;
  const onSecondSignal = () => say('Ended at once; the next start recovers.');
  const grace = closeWithGrace({ delay: STOP_TIMEOUT_MS, logger: false, onSecondSignal }, async ({ err, signal }) => {
    failure ??= err;
    if (failure !== undefined) complain(failure);
    if (signal) say(`\nStopping after ${signal}; once more ends at once.`);
    aborter.abort();
    await supervisor.stopAll();
    say('Stopped.');
    if (failure !== undefined) throw failure;
  });
  return {
    signal: aborter.signal,
    stop: (error?: unknown) => {
      // A step that was cut off by the stop has nothing to add.
      if (aborter.signal.aborted) return;
      failure = error;
      grace.close();
    },
  };
}

async function startAll(start: Start): Promise<Findings> {
  const findings: Findings = {
    databaseUrl: '',
    dataDirectory: undefined,
    temporalAddress: '',
    temporalUiUrl: undefined,
    apiPort: 0,
  };
  const steps: ListrTask<Findings>[] = [
    { title: 'Servers', task: (_, task) => task.newListr([postgresStep(start), temporalStep(start), bundleStep()], SIDE_BY_SIDE) },
    { title: 'Migrations', task: ({ databaseUrl }) => migrate(databaseUrl) },
    serviceStep(start),
  ];
  const rendererOptions = { ...TIMED, collapseSubtasks: false };
  await new Listr(steps, { ctx: findings, registerSignalListeners: false, rendererOptions, fallbackRendererOptions: TIMED }).run();
  return findings;
}

function postgresStep({ env, supervisor }: Start): ListrTask<Findings> {
  return {
    title: 'PostgreSQL',
    task: async (findings, task) => {
      const named = env['DATABASE_URL'];
      if (named) {
        task.title = 'PostgreSQL: the one DATABASE_URL names';
        findings.databaseUrl = named;
        return;
      }
      const { cluster, databaseUrl, directory } = await startEmbeddedPostgres(supervisor);
      task.title = `PostgreSQL 18 on port ${cluster.port}${cluster.reused ? ', taken over from an earlier start' : ''}`;
      findings.databaseUrl = databaseUrl;
      findings.dataDirectory = directory;
    },
  };
}

function temporalStep({ env, supervisor, signal }: Start): ListrTask<Findings> {
  return {
    title: 'Temporal',
    task: async (findings, task) => {
      const named = env['TEMPORAL_ADDRESS'];
      if (named) {
        task.title = 'Temporal: the one TEMPORAL_ADDRESS names';
        findings.temporalAddress = named;
        return;
      }
      const onProgress = (text: string) => {
        task.title = `Temporal: ${text}`;
      };
      const server = await startEmbeddedTemporal(supervisor, { env, onProgress, signal });
      task.title = `Temporal on port ${server.port}`;
      findings.temporalAddress = server.address;
      findings.temporalUiUrl = server.uiUrl;
    },
  };
}

/** Built here once, so that the worker finds it ready. */
function bundleStep(): ListrTask<Findings> {
  return {
    title: 'Workflow bundle',
    task: async () => {
      await workflowBundle();
    },
  };
}

/** Both at once. Both must know the API's port: the sandbox's providers, who live in the worker, send their events there. */
function serviceStep({ env, supervisor }: Start): ListrTask<Findings> {
  return {
    title: 'API and worker',
    task: async (findings, task) => {
      const wished = Number(env['PORT'] || DEFAULT_API_PORT);
      for (let attempt = 1; ; attempt += 1) {
        findings.apiPort = await freePort(wished);
        task.title = `API on port ${findings.apiPort}${findings.apiPort === wished ? '' : `, since ${wished} is taken`}, and worker`;
        const outcomes = await Promise.allSettled([api(env, findings), worker(env, findings)].map((service) => startService(service, supervisor.keep)));
        const failed = outcomes.find((outcome) => outcome.status === 'rejected');
        if (!failed) return;
        // Another stack may take the port between the probe and the start; nothing else is worth another try.
        if (attempt === SERVICE_ATTEMPTS || !readFileSync(API_LOG, 'utf8').includes('EADDRINUSE')) throw failed.reason;
        await supervisor.stopStage('service');
      }
    },
  };
}

const api = (env: NodeJS.ProcessEnv, findings: Findings): ServiceOptions => ({
  name: 'The API',
  script: 'api/main.ts',
  env: serviceEnv(env, findings),
  logFile: API_LOG,
  // The line proves that it is ours: another stack's API may be the one that answers.
  isReady: async (log) => says(log, 'API ready', env) && (await answersReady(findings.apiPort)),
});

const worker = (env: NodeJS.ProcessEnv, findings: Findings): ServiceOptions => ({
  name: 'The worker',
  script: 'worker/main.ts',
  env: serviceEnv(env, findings),
  logFile: WORKER_LOG,
  isReady: (log) => says(log, 'worker ready', env),
});

/** With a log level that hides the line there is nothing to wait for. */
const says = (log: string, line: string, env: NodeJS.ProcessEnv): boolean => log.includes(line) || !['info', 'debug', '', undefined].includes(env['LOG_LEVEL']);

const serviceEnv = (env: NodeJS.ProcessEnv, { databaseUrl, temporalAddress, apiPort }: Findings): NodeJS.ProcessEnv => ({
  ...env,
  DATABASE_URL: databaseUrl,
  TEMPORAL_ADDRESS: temporalAddress,
  PORT: String(apiPort),
});

async function answersReady(apiPort: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${apiPort}/health/ready`, { signal: AbortSignal.timeout(2_000) });
    return response.ok;
  } catch {
    return false;
  }
}

/** Keeps this process alive, and ends the stack when one of its processes, or the npm that started it, is gone. */
function watch(supervisor: Supervisor, stop: (error?: unknown) => void, env: NodeJS.ProcessEnv): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    const dead = supervisor.findDead();
    // A signal sent to npm ends npm's shell and never arrives here: being handed to another parent is how it shows.
    const abandoned = env['npm_lifecycle_event'] !== undefined && process.ppid !== parent;
    if (!dead && !abandoned) return;
    clearInterval(timer);
    stop(dead && new Error(`${dead.name} ended unexpectedly; its log is ${dead.logFile}.`));
  }, WATCH_MS);
}

function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const { major: wantedMajor, minor: wantedMinor } = NODE_WANTED;
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return;
  throw new Error(`Node ${process.versions.node} is too old: install Node ${wantedMajor}.${wantedMinor} or later.`);
}

const say = (text: string): void => console.log(text);

/** One sentence for the person in front of it; the stack trace only when somebody asks for it. */
function complain(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  console.error(`${styleText('red', 'Not running:')} ${message}`);
  if (process.env['DEBUG'] && error instanceof Error) console.error(error.stack, error.cause ?? '');
}

main(process.env).catch((error: unknown) => {
  complain(error);
  process.exitCode = 1;
});
