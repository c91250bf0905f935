/**
 * The workflow bundle: the code that a worker loads into its sandbox. Building it takes seconds, so it is built once
 * for each content of its sources and kept in `.local/bundle/`. An image contains the file.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { localDirectory, repositoryRoot } from '../process/place.ts';

const DIRECTORY = path.join(localDirectory, 'bundle');

/** What determines the bundle's bytes: its code, the versions of the packages, and the options in this file. */
const SOURCES = ['workflows', 'domain', 'package-lock.json', path.relative(repositoryRoot, import.meta.filename)];

/** Older bundles are kept for this time, because a running process may still read one. */
const KEEP_MS = 24 * 60 * 60 * 1_000;

/** Makes workflows continue the trace that started them. Only in the bundle of workers that trace: it adds packages. */
const TRACING_MODULE = '@temporalio/interceptors-opentelemetry/lib/workflow-interceptors';

/**
 * The path of the bundle for the current sources. Builds it if it is missing. Several processes may do this at once.
 */
export async function workflowBundle({
  traced = false,
}: {
  readonly traced?: boolean;
} = {}): Promise<{ codePath: string }> {
  const codePath = path.join(DIRECTORY, `${await contentHash()}${traced ? '-traced' : ''}.js`);
  if (existsSync(codePath)) return { codePath };
  // Imported only to build, because the import takes most of a second.
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
