/** Removes the data of this clone's stacks wherever it lies, so that the next start begins with empty data. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { CommandError, EXIT } from '../../ops/command-line/program.ts';
import { isRunning } from '../../process/local/process-record.ts';
import { readStack } from '../../process/local/running-stack.ts';
import { stopCluster } from './postgres.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';

/** Below `.local`. The secrets stay: a database of DATABASE_URL, which is not removed, may need them. */
const DATA = ['cluster', 'rehearsal', 'temporal', 'postgres', 'log'];
const STACKS = ['.', 'cluster', 'rehearsal'];

/**
 * Stops what killed stacks left, and removes their data. Installed programs and the secrets stay.
 *
 * @param places `directory`: usually `.local`; `outside`: folders outside the clone
 * @returns the removed files and folders
 * @throws CommandError when a stack of this clone is running
 */
export async function removeData({
  directory,
  outside,
}: {
  readonly directory: string;
  readonly outside: readonly string[];
}): Promise<string[]> {
  const stacks = STACKS.map((name) => path.join(directory, name)).filter((folder) => existsSync(folder));
  for (const folder of stacks) {
    const running = readStack(folder)?.supervisor;
    if (running && isRunning(running))
      throw new CommandError(
        EXIT.refused,
        `The stack of this clone is running (process ${running.pid}): stop it first.`,
      );
  }
  // While their records exist, no start of this clone begins: its data would be removed.
  const supervisors: Supervisor[] = [];
  for (const folder of stacks) supervisors.push(await createSupervisor({ embedsDatabase: false, directory: folder }));
  for (const place of [directory, ...outside])
    for (const name of STACKS) await stopCluster(path.join(place, name, 'postgres'));
  const found = [...outside, ...DATA.map((name) => path.join(directory, name))].filter((item) => existsSync(item));
  for (const item of found) await rm(item, { recursive: true, force: true });
  for (const supervisor of supervisors) await supervisor.stopAll();
  return found;
}
