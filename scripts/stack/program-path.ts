/** Finds programs on the PATH of an environment. */
import { accessSync, constants, statSync } from 'node:fs';
import path from 'node:path';

export function findOnPath(name: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const suffixes = process.platform === 'win32' ? ['.exe', '.cmd', ''] : [''];
  const folders = (env['PATH'] ?? '').split(path.delimiter).filter((folder) => folder !== '');
  return folders.flatMap((folder) => suffixes.map((suffix) => path.join(folder, name + suffix))).find(isExecutable);
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
