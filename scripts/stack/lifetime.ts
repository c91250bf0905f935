/** The start and the end of a command that runs a stack: its environment, its signals, and its errors. */
import { closeSync } from 'node:fs';
import { styleText } from 'node:util';
import { ConfigError } from '../../config/fault.ts';
import type { Parameters, ValuesOf } from '../../ops/command-line/parameter.ts';
import { command, EXIT, runProgram, standardOutput } from '../../ops/command-line/program.ts';
import { SAME_SIGNAL_MS, STOP_SIGNALS } from '../../process/shutdown.ts';
import type { Supervisor } from './supervisor.ts';

const WATCH_MS = 500;
const STOP_TIMEOUT_MS = 90_000;

/**
 * A program that runs a stack. It exits with 1, and says in one sentence why, when the stack cannot begin, and with 78
 * when its configuration is refused.
 *
 * @param run starts the stack, which ends with the process
 */
export async function runStackProgram<Takes extends Parameters>(
  program: { readonly name: string; readonly description: string; readonly takes: Takes },
  run: (env: NodeJS.ProcessEnv, values: ValuesOf<Takes>) => Promise<void>,
): Promise<void> {
  const attempt = async (env: NodeJS.ProcessEnv, values: ValuesOf<Takes>) => {
    try {
      await run(env, values);
      return EXIT.done;
    } catch (error) {
      complain(error);
      return error instanceof ConfigError ? EXIT.configuration : EXIT.refused;
    }
  };
  const stack = command({ ...program, json: false, run: attempt });
  process.exitCode = await runProgram(stack, process.argv.slice(2), standardOutput(), (act) => act(process.env));
}

/** By default the runtime is the local sandbox. There, webhooks may go to this machine. */
export function withDefaults(given: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const runtime = given['RUNTIME_ENVIRONMENT'] || 'local-sandbox';
  const sandbox = runtime === 'local-sandbox' ? { WEBHOOK_ALLOW_LOCAL_TARGETS: 'true' } : {};
  return { ...sandbox, ...given, RUNTIME_ENVIRONMENT: runtime };
}

/**
 * Stops the stack once, at the first of: a signal, a failed step, the end of one of its processes, an unexpected error.
 * A closed terminal is a signal too (SIGHUP). Then nobody reads the output, so it is dropped.
 *
 * @param interrupted the error after a signal, for a command that should end by itself
 */
export function stopInOrder(supervisor: Supervisor, interrupted?: Error) {
  const aborter = new AbortController();
  let failure: unknown;
  let signalledAt: number | undefined;
  let isHungUp = false;
  const close = async (): Promise<void> => {
    aborter.abort();
    const deadline = setTimeout(() => process.exit(1), STOP_TIMEOUT_MS);
    await supervisor.stopAll().catch((error: unknown) => {
      failure = error;
      complain(error);
    });
    clearTimeout(deadline);
    say('Stopped.');
    if (isHungUp) leaveTerminal();
    process.exit(failure === undefined ? 0 : 1);
  };
  const stop = (error?: unknown): void => {
    // The stop makes running steps fail. Their errors mean nothing.
    if (aborter.signal.aborted) return;
    failure = error;
    if (failure !== undefined) complain(failure);
    void close();
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    isHungUp ||= signal === 'SIGHUP';
    if (signalledAt === undefined) {
      signalledAt = performance.now();
      say(`\nStopping after ${signal}. A second signal kills at once.`);
      stop(interrupted);
    } else if (signal !== 'SIGHUP' && performance.now() - signalledAt > SAME_SIGNAL_MS) {
      say('Killed. The next start recovers.');
      process.exit(1);
    }
  };
  surviveClosedOutput();
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  process.on('uncaughtException', stop);
  process.on('unhandledRejection', stop);
  return { signal: aborter.signal, stop };
}

/** A write to a closed terminal or pipe fails. That must not keep the stack from stopping in order. */
function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

/** Node aborts at its end when it cannot reset a terminal that is closed. It leaves closed files alone. */
function leaveTerminal(): void {
  for (const descriptor of [0, 1, 2]) closeSync(descriptor);
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
  const styled = (style: 'red' | 'dim', text: string) => styleText(style, text, { stream: process.stderr });
  console.error(`${styled('red', 'Not running:')} ${error instanceof Error ? error.message : String(error)}`);
  if (error instanceof Error && typeof error.cause === 'string') console.error(styled('dim', error.cause));
}
