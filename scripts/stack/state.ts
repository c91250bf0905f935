/**
 * Writes `.local/stack.json`, where other commands find the running stack of this clone. It contains the database's
 * password, so only its owner can read it. It exists from the start to the clean stop. After a kill, the next start
 * reads in it which processes are left.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { localDirectory } from '../../process/local/place.ts';
import { type StackState, stackFile } from '../../process/local/running-stack.ts';
import { replaceFile } from './replace-file.ts';

export function writeStack(state: StackState, directory = localDirectory): void {
  const file = stackFile(directory);
  mkdirSync(directory, { recursive: true });
  replaceFile(file, `${JSON.stringify(state, null, 2)}\n`);
}

export const removeStack = (directory = localDirectory): void => rmSync(stackFile(directory), { force: true });
