/**
 * `npm start`: the whole service on one machine from nothing but a clone. A PostgreSQL and a Temporal come along unless
 * DATABASE_URL and TEMPORAL_ADDRESS name others. Ctrl-C stops everything in order; after a kill the next start recovers.
 */
import { styleText } from 'node:util';
import closeWithGrace from 'close-with-grace';
import { loadConfig } from '../config.ts';
import { banner } from './stack/banner.ts';
import { logDirectory } from './stack/embedded.ts';
import { localDirectory } from './stack/place.ts';
import { apiUrl, startAll } from './stack/steps.ts';
import { createSupervisor, type Supervisor } from './stack/supervisor.ts';

const NODE_WANTED = { major: 20, minor: 19 };
const WATCH_MS = 500;
const STOP_TIMEOUT_MS = 90_000;

async function main(given: NodeJS.ProcessEnv): Promise<void> {
  const startedAt = performance.now();
  checkNode();
  const env = withDefaults(given);
  // Faults of the configuration are told before anything runs; the embedded database's address is not known yet.
  const config = loadConfig({ ...env, DATABASE_URL: env['DATABASE_URL'] || 'postgresql://127.0.0.1' }, localDirectory);
  const supervisor = await createSupervisor({ embedsDatabase: !env['DATABASE_URL'] });
  const { signal, stop } = stopInOrder(supervisor);
  try {
    const findings = await startAll({ env, config, supervisor, signal });
    const { apiPort, dataDirectory, ...servers } = findings;
    const addresses = { ...servers, apiUrl: apiUrl(config, apiPort) };
    supervisor.announce(addresses);
    const seconds = (performance.now() - startedAt) / 1_000;
    say(`\n${banner({ ...addresses, dataDirectory, seconds, runtime: config.runtime, logDirectory })}\n`);
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

/** One sentence for the person in front of it, and what a program said last where there is such a thing. */
function complain(error: unknown): void {
  console.error(`${styleText('red', 'Not running:')} ${error instanceof Error ? error.message : String(error)}`);
  if (error instanceof Error && typeof error.cause === 'string') console.error(styleText('dim', error.cause));
}

main(process.env).catch((error: unknown) => {
  complain(error);
  process.exitCode = 1;
});
