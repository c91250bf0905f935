/** What is generated, and which of it is not what the code says. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorPage } from './error.ts';
import { describeApi } from './openapi.ts';
import { stateMachinePage } from './state-machine.ts';

/** Contents by path below the repository; the same for the same code. */
export type GeneratedFiles = Readonly<Record<string, string>>;

export async function generatedFiles(): Promise<GeneratedFiles> {
  const { document } = await describeApi();
  return {
    'docs/openapi.json': `${JSON.stringify(document, null, 2)}\n`,
    'docs/errors.md': errorPage(),
    'docs/state-machines.md': stateMachinePage(),
  };
}

/** The paths whose file below `root` is missing or other than generated. */
export async function staleFiles(root: string, files: GeneratedFiles): Promise<string[]> {
  const stale = await Promise.all(
    Object.entries(files).map(async ([file, content]) => {
      const current = await readFile(path.join(root, file), 'utf8').catch(() => undefined);
      return current === content ? [] : [file];
    }),
  );
  return stale.flat();
}

/** Writes what is stale; the folders are there. */
export async function writeFiles(root: string, files: GeneratedFiles): Promise<string[]> {
  const stale = await staleFiles(root, files);
  for (const file of stale) await writeFile(path.join(root, file), files[file] ?? '');
  return stale;
}
