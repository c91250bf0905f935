/**
 * A process of a stack, usually one of the product's: starts it with a log file of its own and waits until it is ready.
 */
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { repositoryRoot } from '../../process/local/place.ts';
import { isRunning, type ProcessRecord } from '../../process/local/process-record.ts';
import { startProcess, stopProcess } from './process.ts';
import type { Member, Stage } from './supervisor.ts';

export type ServiceOptions = {
  readonly name: string;
  readonly stage?: Stage;
  /** A script of TypeScript below the repository, a compiled one, or any program with its arguments. */
  readonly run: string | readonly [program: string, ...args: string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logFile: string;
  /** Called repeatedly with what the process has logged so far. */
  readonly isReady: (log: string) => boolean | Promise<boolean>;
};

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 35_000;
const POLL_MS = 50;
const TAIL_LINES = 12;

/**
 * Starts the process and passes it to `keep` at once, so that it will be stopped whatever happens next.
 *
 * @throws Error in one sentence when it does not become ready, with its last lines as the cause
 */
export async function startService(options: ServiceOptions, keep: (member: Member) => Promise<void>): Promise<void> {
  const record = launch(options);
  await keep({ stage: 'service', ...options, record, stop: () => stopProcess(record, STOP_TIMEOUT_MS) });
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await options.isReady(readFileSync(options.logFile, 'utf8')))) {
    const fault = !isRunning(record)
      ? 'ended before it was ready'
      : Date.now() > deadline
        ? `was not ready after ${READY_TIMEOUT_MS / 1_000} s`
        : undefined;
    if (fault)
      throw new Error(`${options.name} ${fault}; its log is ${options.logFile}.`, { cause: tail(options.logFile) });
    await sleep(POLL_MS);
  }
}

/** Renames the log of the previous run. */
export function freshLog(file: string): string {
  mkdirSync(path.dirname(file), { recursive: true });
  if (existsSync(file)) renameSync(file, file.replace(/\.log$/, '.previous.log'));
  return file;
}

function launch({ run, env, logFile }: ServiceOptions): ProcessRecord {
  const [program, ...args] = typeof run === 'string' ? [process.execPath, ...optionsFor(run), script(run)] : run;
  return startProcess({ program, args, env, logFile: freshLog(logFile) });
}

const script = (run: string): string => path.resolve(repositoryRoot, run);

const optionsFor = (run: string): string[] => (run.endsWith('.ts') ? ['--import', 'tsx'] : ['--enable-source-maps']);

const tail = (file: string): string =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-TAIL_LINES)
    .map((line) => `    ${line.slice(0, 500)}`)
    .join('\n');
