/**
 * The folder of this clone outside the clone. Root's PostgreSQL needs it when the clone is below a folder that the
 * account of PostgreSQL cannot enter, /root for example.
 */
import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { repositoryRoot } from '../../process/local/place.ts';

const NAME = 'settlement-service';
/** The first survives a reboot, but only root can write to it. */
const PARENTS = ['/var/lib', os.tmpdir()];

/** Creates the folder, open for every account. */
export async function reachableDirectory(): Promise<string> {
  const parent = path.join(PARENTS.find(isWritable) ?? os.tmpdir(), NAME);
  const directory = path.join(parent, cloneName());
  await mkdir(directory, { recursive: true });
  await Promise.all([parent, directory].map((folder) => chmod(folder, 0o755)));
  return directory;
}

/** Every place where the folder may be, whether it exists or not. */
export const outsideDirectories = (): string[] => PARENTS.map((parent) => path.join(parent, NAME, cloneName()));

const cloneName = (): string =>
  `${path.basename(repositoryRoot)}-${createHash('sha256').update(repositoryRoot).digest('hex').slice(0, 8)}`;

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
