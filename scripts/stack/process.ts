/** Stops recorded processes, which may outlive their parent, within a limit of time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, type ProcessRecord } from '../../process/process-record.ts';

const POLL_MS = 25;

/**
 * Asks the recorded process to end, and ends it by force after `timeoutMs`. Does nothing when the pid belongs to
 * another process by now.
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

/** Waits until the recorded process is gone; false when it is still there after `timeoutMs`. */
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
