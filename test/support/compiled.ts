/**
 * Programs that start fast. `tsx` compiles every module when it is loaded, and thousands of files are read: together
 * two thirds of a start's processor time. A test that starts programs a hundred times builds one file of each, once.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { repositoryRoot } from '../../process/place.ts';

/** The programs, and the packages that stay outside of each: they find files beside their own. */
const PROGRAMS = {
  api: ['@scalar/*', '@temporalio/core-bridge', '@temporalio/worker'],
  // The SDK's worker loads its parts by their paths, and must share one copy of the other packages.
  worker: ['@temporalio/*'],
  ops: ['@temporalio/core-bridge', '@temporalio/worker'],
} as const;
export type CompiledProgram = keyof typeof PROGRAMS;

/** What packages in CommonJS expect. */
const COMMON_JS =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);" +
  ' const { dirname: __dirname, filename: __filename } = import.meta;';

/** A module keeps the place of its source. */
const sourcePlaces: Plugin = {
  name: 'source-places',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path: file }) => {
      if (file.includes('/node_modules/')) return undefined;
      const contents = (await readFile(file, 'utf8'))
        .replaceAll('import.meta.dirname', JSON.stringify(path.dirname(file)))
        .replaceAll('import.meta.filename', JSON.stringify(file))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href));
      return { contents, loader: 'ts' };
    });
  },
};

/**
 * @param folder inside the repository, so that the packages are found
 * @returns the file that `node` starts for each program
 */
export async function compilePrograms(folder: string): Promise<Readonly<Record<CompiledProgram, string>>> {
  const compiled = (program: CompiledProgram): string => path.join(folder, program, 'main.mjs');
  const compile = (program: CompiledProgram) => {
    const source = path.join(repositoryRoot, program, 'main.ts');
    return build({
      entryPoints: [source],
      outdir: path.join(folder, program),
      outExtension: { '.js': '.mjs' },
      bundle: true,
      // What is imported late is read late.
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      external: [...PROGRAMS[program], 'pg-native'],
      plugins: [sourcePlaces],
      // A program runs when it is the one that was started.
      banner: { js: `${COMMON_JS} process.argv[1] = ${JSON.stringify(source)};` },
      logLevel: 'error',
    });
  };
  await Promise.all([compile('api'), compile('worker'), compile('ops')]);
  return { api: compiled('api'), worker: compiled('worker'), ops: compiled('ops') };
}
