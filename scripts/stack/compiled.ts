/**
 * Programs that start fast. `tsx` compiles every module when it is loaded, and thousands of files are read: together
 * two thirds of a start's processor time. So each program is built as one file, once for each content of the sources.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, utimes } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BuildOptions, Plugin } from 'esbuild';
import { hashContents, nameBuilt, removeOlder } from '../../process/local/content-hash.ts';
import { localDirectory, repositoryRoot } from '../../process/local/place.ts';

/** Inside the repository, so that the packages are found. */
const DIRECTORY = path.join(localDirectory, 'compiled');

/** The folders of the programs' code. */
export const PROGRAM_FOLDERS = [
  'activities',
  'api',
  'config',
  'db',
  'domain',
  'ops',
  'process',
  'worker',
  'workflows',
] as const;

/** What determines the programs: their code, the versions of the packages, and the options in this file. */
const SOURCES = [...PROGRAM_FOLDERS, ...['package-lock.json', path.relative(repositoryRoot, import.meta.filename)]];

/** The programs, and the packages that stay outside of each: they find files next to their own. */
const PROGRAMS = {
  api: ['@temporalio/core-bridge', '@temporalio/worker'],
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
 * What is built: our code alone takes half a second and halves the time of a start. With the packages it takes three
 * seconds, and a start takes a third.
 */
type Extent = 'own code' | 'with packages';

/**
 * The file that `node` starts for each of the programs. Builds what is missing. Several processes may do this at once.
 */
export async function compiledPrograms<Name extends CompiledProgram>(
  programs: readonly Name[],
  extent: Extent,
): Promise<Readonly<Record<Name, string>>> {
  const version = await hashContents(SOURCES);
  const entries = programs.map(async (program) => [program, await compiled(program, version, extent)] as const);
  return Object.fromEntries(await Promise.all(entries)) as Record<Name, string>;
}

async function compiled(program: CompiledProgram, version: string, extent: Extent): Promise<string> {
  const folder = path.join(DIRECTORY, `${program}-${extent === 'own code' ? 'own' : 'full'}-${version}`);
  const file = path.join(folder, 'main.mjs');
  if (existsSync(file)) {
    const now = new Date();
    await utimes(folder, now, now);
    return file;
  }
  const temporary = `${folder}.${process.pid}`;
  await mkdir(temporary, { recursive: true });
  await removeOlder(DIRECTORY);
  await compile(program, temporary, extent);
  try {
    await nameBuilt(temporary, folder);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another process has built the same meanwhile.
    if (!existsSync(file)) throw error;
  }
  return file;
}

let buildsUnderWay = 0;

async function compile(program: CompiledProgram, folder: string, extent: Extent): Promise<void> {
  // Imported only to build.
  const { build, stop } = await import('esbuild');
  buildsUnderWay += 1;
  try {
    await build(optionsOf(program, folder, extent));
  } finally {
    buildsUnderWay -= 1;
    // Otherwise esbuild's own process runs as long as this one.
    if (buildsUnderWay === 0) await stop();
  }
}

function optionsOf(program: CompiledProgram, folder: string, extent: Extent): BuildOptions {
  const source = path.join(repositoryRoot, program, 'main.ts');
  return {
    entryPoints: [source],
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    // What is imported late is read late.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: extent === 'own code' ? 'external' : 'bundle',
    external: [...PROGRAMS[program], 'pg-native'],
    plugins: [sourcePlaces],
    // An error names the place in its source. Only `--enable-source-maps` reads the map.
    sourcemap: 'linked',
    sourcesContent: false,
    // A program runs when it is the one that was started.
    banner: { js: `${COMMON_JS} process.argv[1] = ${JSON.stringify(source)};` },
    // The error that is thrown says it all.
    logLevel: 'silent',
  };
}
