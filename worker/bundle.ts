/**
 * The workflow bundle: what a worker loads into its sandbox. Building takes seconds, so it is built once per content of
 * the sources that can be in it, and kept under `.local/bundle/`. An image is built with the file already there.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { localDirectory, repositoryRoot } from '../process/place.ts';

const DIRECTORY = path.join(localDirectory, 'bundle');

/** Everything that decides the bundle's bytes: the code in it, the packages' versions, and the options below. */
const SOURCES = ['workflows', 'domain', 'package-lock.json', path.relative(repositoryRoot, import.meta.filename)];

/** Bundles of other contents are kept this long: a process that started with one may still read it. */
const KEEP_MS = 24 * 60 * 60 * 1_000;

/** Makes workflows hand on the trace that they were started in; for workers that keep traces, since it brings packages with it. */
const TRACING_MODULE = '@temporalio/interceptors-opentelemetry/lib/workflow-interceptors';

/** The path of the bundle for the sources as they are now, built when there is none. Safe in several processes at once. */
export async function workflowBundle({
  traced = false,
}: {
  readonly traced?: boolean;
} = {}): Promise<{ codePath: string }> {
  const codePath = path.join(DIRECTORY, `${await contentHash()}${traced ? '-traced' : ''}.js`);
  if (existsSync(codePath)) return { codePath };
  // Loaded only to build: a process that finds the bundle ready starts most of a second sooner.
  const { bundleWorkflowCode, DefaultLogger } = await import('@temporalio/worker');
  const { code } = await bundleWorkflowCode({
    workflowsPath: path.join(repositoryRoot, 'workflows', 'index.ts'),
    workflowInterceptorModules: traced ? [createRequire(import.meta.url).resolve(TRACING_MODULE)] : [],
    logger: new DefaultLogger('WARN'),
  });
  await mkdir(DIRECTORY, { recursive: true });
  await removeOld();
  const temporary = `${codePath}.${process.pid}`;
  await writeFile(temporary, code);
  await rename(temporary, codePath);
  return { codePath };
}

async function contentHash(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of (await Promise.all(SOURCES.map(filesUnder))).flat()) {
    hash
      .update(`${path.relative(repositoryRoot, file)}\0`)
      .update(await readFile(file))
      .update('\0');
  }
  return hash.digest('hex').slice(0, 32);
}

async function filesUnder(source: string): Promise<string[]> {
  const start = path.join(repositoryRoot, source);
  if (!(await stat(start)).isDirectory()) return [start];
  const entries = await readdir(start, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? [path.join(entry.parentPath, entry.name)] : [])).sort();
}

async function removeOld(): Promise<void> {
  const oldest = Date.now() - KEEP_MS;
  for (const name of await readdir(DIRECTORY)) {
    const file = path.join(DIRECTORY, name);
    const found = await stat(file).catch(() => undefined);
    if (found && found.mtimeMs < oldest) await rm(file, { force: true });
  }
}
