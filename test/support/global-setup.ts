/**
 * What all test files share: a throwaway PostgreSQL with a migrated template database, a Temporal development server,
 * the program of the time-skipping server and the workflow bundle. This process owns them. It starts each one when the
 * first file asks for it, so a run of pure tests starts nothing.
 *
 * A run records in its folder which processes it started. If a run is killed, the next run ends these processes.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { z } from 'zod';
import { localDirectory } from '../../process/place.ts';
import { findProcess, isRunning, type ProcessRecord } from '../../process/process-record.ts';
import { acquireDevServer, acquireTestServer } from '../../scripts/stack/binary.ts';
import { stopProcess } from '../../scripts/stack/process.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL under which `test/support` asks for a resource: `GET <url>/<name>`. */
    resources: string;
  }
}

type Resources = Readonly<Record<string, () => Promise<unknown>>>;

const FOLDER_PREFIX = 'settlement-test-';
/** On a file system in memory, a database is created in 12 ms, and no test waits for the disk. */
const MEMORY = '/dev/shm';
const MEMORY_FREE_MIN_BYTES = 2 ** 31;
/**
 * From this length on, Temporal suggests to continue as a new run. Its default is 4 096, which takes a test a minute.
 */
const LONG_HISTORY_EVENTS = 200;
const ORPHAN_AGE_MS = 60_000;
const KILL_TIMEOUT_MS = 10_000;

const Records = z.array(z.object({ pid: z.number(), startedAt: z.string(), command: z.string() }));

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await endLeftovers();
  const run = await openRun();
  const resources = shareResources(run, await acquirePrograms());
  const server = await serve(resources);
  project.provide('resources', server.url);
  return async () => {
    await server.close();
    await run.end();
  };
}

type Run = Awaited<ReturnType<typeof openRun>>;

/** The run's folder. It records the owner of the run and the processes that it started. */
async function openRun() {
  const folder = await mkdtemp(path.join(await roomyFolder(), FOLDER_PREFIX));
  const records: ProcessRecord[] = [];
  const save = () => writeFile(path.join(folder, 'processes.json'), JSON.stringify(records));
  const own = findProcess(process.pid);
  if (own) await writeFile(path.join(folder, 'owner.json'), JSON.stringify([own]));
  // PostgreSQL's account must reach its data, which is in a closed folder below.
  await chmod(folder, 0o755);
  return {
    folder,
    async started(record: ProcessRecord): Promise<void> {
      records.push(record);
      await save();
    },
    end: () => endRun(folder),
  };
}

/** No clean shutdown: the data is deleted with the folder. */
async function endRun(folder: string): Promise<void> {
  for (const record of await readRecords(path.join(folder, 'processes.json'))) {
    await stopProcess(record, KILL_TIMEOUT_MS, 'SIGQUIT');
  }
  await rm(folder, { recursive: true, force: true });
}

async function roomyFolder(): Promise<string> {
  const free = await statfs(MEMORY).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= MEMORY_FREE_MIN_BYTES ? MEMORY : os.tmpdir();
}

async function endLeftovers(): Promise<void> {
  for (const parent of [MEMORY, os.tmpdir()]) {
    const names = await readdir(parent).catch(() => []);
    for (const name of names.filter((candidate) => candidate.startsWith(FOLDER_PREFIX))) {
      const folder = path.join(parent, name);
      if (await isOrphaned(folder)) await endRun(folder);
    }
  }
}

/** A run that has just created its folder may not have recorded its owner yet. */
async function isOrphaned(folder: string): Promise<boolean> {
  const [owner] = await readRecords(path.join(folder, 'owner.json'));
  if (owner) return !isRunning(owner);
  const found = await stat(folder).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > ORPHAN_AGE_MS;
}

async function readRecords(file: string): Promise<ProcessRecord[]> {
  if (!existsSync(file)) return [];
  const parsed = Records.safeParse(JSON.parse(await readFile(file, 'utf8')));
  return parsed.success ? parsed.data : [];
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
function shareResources(run: Run, programs: Awaited<ReturnType<typeof acquirePrograms>>): Resources {
  return {
    postgres: once(async () => {
      const { startTestCluster } = await import('./cluster.ts');
      return startTestCluster(run);
    }),
    'dev-server': once(async () => {
      const { startTemporal } = await import('../../scripts/stack/temporal.ts');
      const server = await startTemporal({
        program: programs.devServer(),
        searchAttributes: [],
        logFile: path.join(run.folder, 'temporal.log'),
        dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': LONG_HISTORY_EVENTS },
      });
      await run.started(server.process);
      return { address: server.address };
    }),
    'test-server': once(async () => ({ program: programs.testServer() })),
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
