/** Starts processes that may outlive this one, and stops recorded ones within a time limit. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { repositoryRoot } from '../../process/local/place.ts';
import { findProcess, isRunning, type ProcessRecord } from '../../process/local/process-record.ts';

const POLL_MS = 25;

export type Launch = {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The output is appended to it. */
  readonly logFile: string;
};

/**
 * Starts a program, detached: Ctrl-C in the terminal must reach only the supervisor, which stops everything in order.
 *
 * @throws Error in one sentence when it does not start
 */
export function startProcess({ program, args, env, logFile }: Launch): ProcessRecord {
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(program, args, { cwd: repositoryRoot, env, stdio: ['ignore', log, log], detached: true });
  closeSync(log);
  child.once('error', () => undefined);
  child.unref();
  const record = child.pid === undefined ? undefined : findProcess(child.pid);
  if (!record) throw new Error(`${program} ended right after its start (${logFile}).`);
  return record;
}

/**
 * Signals the recorded process, and kills it after `timeoutMs`. Does nothing if another process has the pid now.
 */
export async function stopProcess(
  record: ProcessRecord,
  timeoutMs: number,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  if (!send(record, signal)) return;
  if (await hasEnded(record, timeoutMs)) return;
  send(record, 'SIGKILL');
  await hasEnded(record, timeoutMs);
}

/** Waits until the recorded process has ended. False if it still runs after `timeoutMs`. */
export async function hasEnded(record: ProcessRecord, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (isRunning(record)) {
    if (Date.now() >= deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

function send(record: ProcessRecord, signal: NodeJS.Signals): boolean {
  if (!isRunning(record)) return false;
  try {
    process.kill(record.pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}
