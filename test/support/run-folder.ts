/**
 * The folder of a test run, and the promise that nothing of the run outlives it: every process that the run starts,
 * directly or not, inherits a mark in its environment. A watchdog outside of the run kills all marked processes and
 * deletes the folder when the run ends, also when its main process was killed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, statfs } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';

const FOLDER_PREFIX = 'settlement-run-';
const WATCHDOG = path.join(import.meta.dirname, 'watchdog.sh');
/** On a file system in memory, a database is created in 12 ms, and no test waits for the disk. */
const MEMORY = '/dev/shm';
const MEMORY_FREE_MIN_BYTES = 2 ** 31;
/** A run that is started by a test of another run has both marks, so that either run's end ends it. */
const MARKS = 'SETTLEMENT_TEST_RUN';

export type RunFolder = {
  readonly folder: string;
  /** Resolves when nothing of the run is left, with a line for each process that had to be killed. */
  end(): Promise<string>;
};

/** Marks this process: what it starts from now on belongs to the run. */
export async function openRunFolder(parent?: string): Promise<RunFolder> {
  const folder = await mkdtemp(path.join(parent ?? (await roomyFolder()), FOLDER_PREFIX));
  // PostgreSQL's account must reach its data, which is in a closed folder below.
  await chmod(folder, 0o755);
  const watchdog = spawn(WATCHDOG, [String(process.pid), folder], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  watchdog.stdin.write(`${path.basename(folder)}\n`);
  process.env[MARKS] = [process.env[MARKS], path.basename(folder)].join(' ');
  return {
    folder,
    end: async () => {
      const [killed] = await Promise.all([
        text(watchdog.stdout),
        once(watchdog, 'exit'),
        watchdog.stdin.end('lives\n'),
      ]);
      return killed;
    },
  };
}

/** What makes a process part of the run, for one that does not inherit this environment. */
export const markOfRun = (): NodeJS.ProcessEnv => ({ [MARKS]: process.env[MARKS] });

/** Does the work of a command. What it starts and its temporary files end with it, also when a signal ends it. */
export async function inRunFolder<Value>(work: () => Promise<Value>): Promise<Value> {
  // On the disk, not in memory: such commands measure how long writes to the disk take.
  const run = await openRunFolder(os.tmpdir());
  process.env['TMPDIR'] = run.folder;
  try {
    return await work();
  } finally {
    await run.end();
  }
}

async function roomyFolder(): Promise<string> {
  const free = await statfs(MEMORY).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= MEMORY_FREE_MIN_BYTES ? MEMORY : os.tmpdir();
}
