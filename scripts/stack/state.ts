/**
 * Writes `.local/stack.json`, which tells other commands which stack of this clone is running. It holds the database's
 * password, so only its owner can read it. It is there from the first start to the clean stop; a file whose supervisor
 * is gone tells the next start what a kill left behind.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { localDirectory } from '../../process/place.ts';
import { type StackState, stackFile } from '../../process/running-stack.ts';

/** Replaces the file in one step, so that nobody reads half of it. */
export function writeStack(state: StackState, directory = localDirectory): void {
  const file = stackFile(directory);
  mkdirSync(directory, { recursive: true });
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}

export const removeStack = (directory = localDirectory): void => rmSync(stackFile(directory), { force: true });
