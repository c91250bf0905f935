/**
 * What all test files share: a throwaway PostgreSQL with a migrated template database, a Temporal development server,
 * the program of the time-skipping server, the workflow bundle and the service's programs. This process owns them. It
 * starts each one when the first file needs it, so a run of pure tests starts nothing.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { localDirectory } from '../../process/local/place.ts';
import { acquireDevServer, acquireTestServer } from '../../scripts/stack/binary.ts';
import { stopProcess } from '../../scripts/stack/process.ts';
import { openRunFolder } from './run-folder.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL under which `test/support` requests a resource: `GET <url>/<name>`. */
    resources: string;
  }
}

type Resources = Readonly<Record<string, () => Promise<unknown>>>;

/**
 * From this length on, Temporal suggests to continue as a new run. Its default is 4 096, which takes a test a minute.
 */
const LONG_HISTORY_EVENTS = 200;
const KILL_TIMEOUT_MS = 10_000;

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const run = await openRunFolder();
  const ends: (() => Promise<void>)[] = [];
  const resources = shareResources(run.folder, ends, await acquirePrograms());
  const server = await serve(resources);
  project.provide('resources', server.url);
  return async () => {
    await server.close();
    await Promise.all(ends.map((end) => end()));
    const killed = await run.end();
    if (killed !== '') process.stderr.write(`  The tests left processes, which were killed:\n${killed}`);
  };
}

/**
 * Acquired before the first test, because it can take minutes, once per clone. If it fails, only the files that need
 * the program fail.
 */
async function acquirePrograms() {
  const acquisition = {
    env: process.env,
    binDirectory: path.join(localDirectory, 'bin'),
    onProgress: (text: string) => process.stdout.write(`  Temporal for the tests: ${text}\n`),
  };
  const [devServer, testServer] = await Promise.allSettled([
    acquireDevServer(acquisition),
    acquireTestServer(acquisition),
  ]);
  const pathOf = (outcome: PromiseSettledResult<string>): string => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  };
  return { devServer: () => pathOf(devServer), testServer: () => pathOf(testServer) };
}

/** Modules are imported when a resource is asked for: the Temporal packages alone take most of a second. */
function shareResources(
  folder: string,
  ends: (() => Promise<void>)[],
  programs: Awaited<ReturnType<typeof acquirePrograms>>,
): Resources {
  return {
    postgres: once(async () => {
      const { startTestCluster } = await import('./cluster.ts');
      const cluster = await startTestCluster(folder);
      ends.push(cluster.end);
      return cluster.addresses;
    }),
    'dev-server': once(async () => {
      const { startTemporal } = await import('../../scripts/stack/temporal.ts');
      const server = await startTemporal({
        program: programs.devServer(),
        searchAttributes: [],
        logFile: path.join(folder, 'temporal.log'),
        dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': LONG_HISTORY_EVENTS },
      });
      ends.push(() => stopProcess(server.process, KILL_TIMEOUT_MS, 'SIGKILL'));
      return { address: server.address };
    }),
    'test-server': once(async () => ({ program: programs.testServer() })),
    programs: once(async () => {
      const { compiledPrograms } = await import('../../scripts/stack/compiled.ts');
      return compiledPrograms(['api', 'worker', 'ops'], 'with packages');
    }),
    'workflow-bundle': once(async () => {
      const { workflowBundle } = await import('../../worker/bundle.ts');
      return workflowBundle();
    }),
  };
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Listens on the loopback address, under a secret path. */
async function serve(resources: Resources) {
  const secret = randomBytes(16).toString('hex');
  const server = createServer((request, response) => {
    const make = resources[(request.url ?? '').replace(`/${secret}/`, '')];
    const answer = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (!make) return answer(404, { error: 'There is no such resource.' });
    make().then(
      (value) => answer(200, value),
      (error: unknown) => answer(500, { error: error instanceof Error ? error.message : String(error) }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The resource server has no port.');
  return {
    url: `http://127.0.0.1:${address.port}/${secret}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
