/** The start and the end of a command that runs a stack: its environment, its signals, and its errors. */
import { styleText } from 'node:util';
import closeWithGrace from 'close-with-grace';
import type { Supervisor } from './supervisor.ts';

const NODE_WANTED = { major: 20, minor: 19 };
const WATCH_MS = 500;
const STOP_TIMEOUT_MS = 90_000;

/** By default the runtime is the local sandbox. There, webhooks may go to this machine. */
export function withDefaults(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const runtime = given['RUNTIME_ENVIRONMENT'] || 'local-sandbox';
  const sandbox = runtime === 'local-sandbox' ? { WEBHOOK_ALLOW_LOCAL_TARGETS: 'true' } : {};
  return { ...sandbox, ...given, RUNTIME_ENVIRONMENT: runtime };
}

export function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const { major: wantedMajor, minor: wantedMinor } = NODE_WANTED;
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return;
  throw new Error(`Node ${process.versions.node} is too old: install Node ${wantedMajor}.${wantedMinor} or later.`);
}

/**
 * Stops the stack once, at the first of: a signal, a failed step, the end of one of its processes.
 *
 * @param interrupted the error after a signal, for a command that should end by itself
 */
export function stopInOrder(supervisor: Supervisor, interrupted?: Error) {
  const aborter = new AbortController();
  let failure: unknown;
  const onSecondSignal = () => say('Killed. The next start recovers.');
  const grace = closeWithGrace({ delay: STOP_TIMEOUT_MS, logger: false, onSecondSignal }, async ({ err, signal }) => {
    failure ??= err ?? (signal && interrupted);
    if (failure !== undefined) complain(failure);
    if (signal) say(`\nStopping after ${signal}. A second signal kills at once.`);
    aborter.abort();
    await supervisor.stopAll();
    say('Stopped.');
    if (failure !== undefined) throw failure;
  });
  return {
    signal: aborter.signal,
    stop: (error?: unknown) => {
      // The stop makes running steps fail. Their errors mean nothing.
      if (aborter.signal.aborted) return;
      failure = error;
      grace.close();
    },
  };
}

/** Keeps this process alive. Stops the stack when one of its processes has ended, or the npm that started it. */
export function watch(supervisor: Supervisor, stop: (error?: unknown) => void, env: NodeJS.ProcessEnv): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    const dead = supervisor.findDead();
    // A signal to npm ends npm's shell and does not arrive here. Then this process gets another parent.
    const isOrphan = env['npm_lifecycle_event'] !== undefined && process.ppid !== parent;
    if (!dead && !isOrphan) return;
    clearInterval(timer);
    stop(dead && new Error(`${dead.name} ended unexpectedly; its log is ${dead.logFile}.`));
  }, WATCH_MS);
}

const say = (text: string): void => console.log(text);

/** Prints the error, and the last lines of the program that failed, if any. */
export function complain(error: unknown): void {
  console.error(`${styleText('red', 'Not running:')} ${error instanceof Error ? error.message : String(error)}`);
  if (error instanceof Error && typeof error.cause === 'string') console.error(styleText('dim', error.cause));
}
