/** How a command that runs a stack begins and ends: its environment, its signals, and what it says when it cannot run. */
import { styleText } from 'node:util';
import closeWithGrace from 'close-with-grace';
import type { Supervisor } from './supervisor.ts';

const NODE_WANTED = { major: 20, minor: 19 };
const WATCH_MS = 500;
const STOP_TIMEOUT_MS = 90_000;

/** A local sandbox unless the caller says otherwise; there, subscribers on this machine may be called. */
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
 * Stops the stack once, whatever asks for it first: a signal, a step that failed, a process that died.
 *
 * @param cutShort what it means that a signal came first, for a command that should have ended by itself
 */
export function stopInOrder(supervisor: Supervisor, cutShort?: Error) {
  const aborter = new AbortController();
  let failure: unknown;
  const onSecondSignal = () => say('Ended at once; the next start recovers.');
  const grace = closeWithGrace({ delay: STOP_TIMEOUT_MS, logger: false, onSecondSignal }, async ({ err, signal }) => {
    failure ??= err ?? (signal && cutShort);
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
export function watch(supervisor: Supervisor, stop: (error?: unknown) => void, env: NodeJS.ProcessEnv): void {
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

const say = (text: string): void => console.log(text);

/** One sentence for the person in front of it, and what a program said last where there is such a thing. */
export function complain(error: unknown): void {
  console.error(`${styleText('red', 'Not running:')} ${error instanceof Error ? error.message : String(error)}`);
  if (error instanceof Error && typeof error.cause === 'string') console.error(styleText('dim', error.cause));
}
