/** Stops recorded processes, which may have outlived their parent, within a time limit. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, type ProcessRecord } from '../../process/process-record.ts';

const POLL_MS = 25;

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
