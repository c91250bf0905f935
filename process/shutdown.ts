/** How the API and the worker close: in order at a signal or an unexpected error, at once at a fault of the process. */
import os from 'node:os';
import closeWithGrace from 'close-with-grace';
import type pino from 'pino';

/**
 * The system handles them by ending the process. A handler of ours would return into the fault: the process would loop
 * without end, use a whole processor, and not react to SIGTERM.
 */
const FAULT_SIGNALS = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const;

/** Node.js itself writes a heap snapshot at this signal, if it is told to: docs/operations.md, `MemoryRunsOut`. */
const SNAPSHOT_SIGNAL = 'SIGUSR2';

export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const;
/** The terminal signals every process in it, and npm forwards what it gets: one Ctrl-C can arrive twice. */
export const SAME_SIGNAL_MS = 300;
const endAtOnce = (signal: (typeof STOP_SIGNALS)[number]): void => process.exit(128 + os.constants.signals[signal]);

/** Logged when an error ends a process that has started. */
export const STOPPED_BY_ERROR = 'the process stops after an error';

const UNHANDLED = 'uncaughtException';
let endAfterLine: ((error: Error) => void) | undefined;

/**
 * Ends the process at a stop signal, and after one line of the log at an error that nothing handles, until
 * `closeInOrder` does. In a container it is the first process, for which the system has no default; and an error that
 * Node.js prints has many lines, with the values of a statement.
 */
export function endWhileStarting(log: Pick<pino.Logger, 'fatal'>): void {
  for (const signal of STOP_SIGNALS) process.once(signal, endAtOnce);
  endAfterLine = (error) => {
    log.fatal({ err: error }, 'the process could not start');
    process.exit(1);
  };
  process.once(UNHANDLED, endAfterLine);
}

type Log = { error(fields: Readonly<Record<string, unknown>>, message: string): void };

/** What closes, and how. */
type Step = readonly [what: string, close: () => unknown];

/**
 * Takes the steps one after the other, once, and then ends the process: with 0, or with 1 after an error, also one of a
 * step, at a second signal, or when `timeoutMs` is over. A line of the log says why it is 1, and what was closing. The
 * same signal again within `SAME_SIGNAL_MS` does not count as a second one.
 */
export function closeInOrder(
  { timeoutMs, log }: { readonly timeoutMs: number; readonly log: Log },
  steps: readonly Step[],
): void {
  for (const signal of STOP_SIGNALS) process.removeListener(signal, endAtOnce);
  // Without a listener, the signal ends a process that was started without that option.
  process.on(SNAPSHOT_SIGNAL, () => undefined);
  if (endAfterLine) process.removeListener(UNHANDLED, endAfterLine);
  let closing: string | undefined;
  const close = async ({ err }: { readonly err?: unknown }): Promise<void> => {
    if (err) log.error({ err }, STOPPED_BY_ERROR);
    try {
      for (const [what, take] of steps) {
        closing = what;
        await take();
      }
    } catch (error) {
      log.error({ err: error, closing }, 'the process did not close in order');
      throw error;
    }
  };
  const { close: begin } = closeWithGrace(
    {
      delay: timeoutMs,
      logger: false,
      skip: [...FAULT_SIGNALS, SNAPSHOT_SIGNAL, ...STOP_SIGNALS],
      onTimeout: () => log.error({ closing }, 'the process did not close in time'),
      onSecondError: (err) => log.error({ err, closing }, 'an error ended the process while it closed'),
    },
    close,
  );
  let first: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (closing === undefined) {
      first = { signal, atMs: performance.now() };
      begin();
    } else if (first?.signal !== signal || performance.now() - first.atMs > SAME_SIGNAL_MS) {
      log.error({ signal, closing }, 'a signal ended the process while it closed');
      process.exit(1);
    }
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
}
