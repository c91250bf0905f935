/**
 * Writes `.local/stack.json`, where other commands find the running stack of this clone. It contains the database's
 * password, so only its owner can read it. It exists from the start to the clean stop. After a kill, the next start
 * reads in it which processes are left.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { localDirectory } from '../../process/local/place.ts';
import { type StackState, stackFile } from '../../process/local/running-stack.ts';

/** Replaces the file in one step, so that readers always see a complete one. */
export function writeStack(state: StackState, directory = localDirectory): void {
  const file = stackFile(directory);
  mkdirSync(directory, { recursive: true });
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}

export const removeStack = (directory = localDirectory): void => rmSync(stackFile(directory), { force: true });
