/**
 * What all test files share: one throwaway PostgreSQL with a migrated template database, one Temporal development server,
 * the program of the time-skipping server, the workflow bundle. This process owns them and starts each when the first
 * file asks for it, so that a run of pure tests starts nothing.
 *
 * Everything a run starts is recorded in its folder. When a run is killed, the next one ends what it left.
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
    /** Where `test/support` asks for a resource: `GET <url>/<name>`. */
    resources: string;
  }
}

type Resources = Readonly<Record<string, () => Promise<unknown>>>;

const FOLDER_PREFIX = 'settlement-test-';
/** A file system in memory makes a database in 12 ms and keeps the disk out of the measured times. */
const MEMORY = '/dev/shm';
const MEMORY_WANTED_BYTES = 2 ** 31;
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

/** The run's folder, which says who owns it and which processes it started. */
async function openRun() {
  const folder = await mkdtemp(path.join(await roomyFolder(), FOLDER_PREFIX));
  const records: ProcessRecord[] = [];
  const save = () => writeFile(path.join(folder, 'processes.json'), JSON.stringify(records));
  const own = findProcess(process.pid);
  if (own) await writeFile(path.join(folder, 'owner.json'), JSON.stringify([own]));
  // The server's account must reach its data, which has its own closed folder.
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

/** Nothing of a run is worth a clean shutdown: the data is thrown away with the folder. */
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
  return free >= MEMORY_WANTED_BYTES ? MEMORY : os.tmpdir();
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

/** A run that has only just made its folder has not signed it yet. */
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

/** Acquired before the first test because it can take minutes, once per clone; a refusal concerns only those who ask. */
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

/** Imports wait until a resource is asked for: the Temporal packages alone take most of a second. */
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

/** On the loopback, under a path nobody can guess. */
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
