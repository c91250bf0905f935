/** Names for what is built from sources: the same contents have the same name, so each is built once. */
import { createHash } from 'node:crypto';
import { open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { repositoryRoot } from './place.ts';

/** What was built or used earlier is kept for a week, because a running process may still read it. */
const KEEP_MS = 7 * 24 * 60 * 60 * 1_000;

/**
 * @param sources files and folders of this repository
 * @returns 32 hex digits that depend on the paths and the contents of all files
 */
export async function hashContents(sources: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of (await Promise.all(sources.map(filesUnder))).flat()) {
    hash
      .update(`${path.relative(repositoryRoot, file)}\0`)
      .update(await readFile(file))
      .update('\0');
  }
  return hash.digest('hex').slice(0, 32);
}

/**
 * Writes a file or a folder to the disk, then renames it. Whoever finds the new name uses what is there: a name that was
 * given earlier could have empty files after a power cut.
 */
export async function nameBuilt(built: string, name: string): Promise<void> {
  for (const file of await filesUnder(built)) {
    const opened = await open(file);
    await opened.sync().finally(() => opened.close());
  }
  await rename(built, name);
}

/** Removes what was built in this folder long ago. */
export async function removeOlder(directory: string): Promise<void> {
  const oldest = Date.now() - KEEP_MS;
  for (const name of await readdir(directory)) {
    const built = path.join(directory, name);
    const found = await stat(built).catch(() => undefined);
    if (found && found.mtimeMs < oldest) await rm(built, { recursive: true, force: true });
  }
}

async function filesUnder(source: string): Promise<string[]> {
  const start = path.resolve(repositoryRoot, source);
  if (!(await stat(start)).isDirectory()) return [start];
  const entries = await readdir(start, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? [path.join(entry.parentPath, entry.name)] : [])).sort();
}
