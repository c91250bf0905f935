/**
 * The workflow bundle: the code that a worker loads into its sandbox. Building it takes seconds, so it is built once
 * for each content of its sources and kept in `.local/bundle/`. An image contains the file.
 */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { hashContents, nameBuilt, removeOlder } from '../process/local/content-hash.ts';
import { localDirectory, repositoryRoot } from '../process/local/place.ts';

const DIRECTORY = path.join(localDirectory, 'bundle');

/** What determines the bundle's bytes: its code, the versions of the packages, and the options in this file. */
const SOURCES = ['workflows', 'domain', 'package-lock.json', path.relative(repositoryRoot, import.meta.filename)];

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
  const codePath = path.join(DIRECTORY, `${await hashContents(SOURCES)}${traced ? '-traced' : ''}.js`);
  if (existsSync(codePath)) return { codePath };
  // Imported only to build, because the import takes most of a second.
  const { bundleWorkflowCode, DefaultLogger } = await import('@temporalio/worker');
  const { code } = await bundleWorkflowCode({
    workflowsPath: path.join(repositoryRoot, 'workflows', 'index.ts'),
    workflowInterceptorModules: traced ? [createRequire(import.meta.url).resolve(TRACING_MODULE)] : [],
    logger: new DefaultLogger('WARN'),
  });
  await mkdir(DIRECTORY, { recursive: true });
  await removeOlder(DIRECTORY);
  const temporary = `${codePath}.${process.pid}`;
  await writeFile(temporary, code);
  await nameBuilt(temporary, codePath);
  return { codePath };
}
