/** The two servers `npm start` brings along when the environment names none: where they live and how they are kept. */
import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { localDirectory, repositoryRoot } from '../../process/place.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';
import { type Acquisition, acquireDevServer } from './binary.ts';
import { type Cluster, ensureDatabase, startCluster } from './postgres.ts';
import { canReach, postgresProgram } from './postgres-program.ts';
import { freshLog } from './service.ts';
import type { Supervisor } from './supervisor.ts';
import { startTemporal, type TemporalServer } from './temporal.ts';

const DATABASE_NAME = 'settlement';
const WISHED_PORT = { postgres: 55_432, temporal: 7_233, temporalUi: 8_233 };

export const logDirectory = path.join(localDirectory, 'log');

type EmbeddedPostgres = {
  /** Of the stack, under `.local`; without one, `.local` itself. */
  readonly folder?: string;
  readonly settings?: Readonly<Record<string, string>>;
};

/** PostgreSQL under `.local/postgres`, or where its account can reach it; gives the server and the database's address. */
export async function startEmbeddedPostgres(
  { keep }: Supervisor,
  { folder = '.', settings = {} }: EmbeddedPostgres = {},
): Promise<{ cluster: Cluster; databaseUrl: string; directory: string }> {
  const logs = path.join(localDirectory, folder, 'log');
  await mkdir(logs, { recursive: true });
  const program = await postgresProgram(reachableDirectory);
  const reachesClone = canReach(program.account, logs);
  const home = reachesClone ? localDirectory : await reachableDirectory();
  const directory = path.join(home, folder, 'postgres');
  const cluster = await startCluster({
    program,
    directory,
    settings,
    wishedPort: WISHED_PORT.postgres,
    ...(reachesClone && { logFile: path.join(logs, 'postgres.log') }),
  });
  await keep({
    name: 'PostgreSQL',
    stage: 'database',
    record: cluster.process,
    logFile: cluster.logFile,
    stop: cluster.stop,
  });
  return { cluster, databaseUrl: await ensureDatabase(cluster, DATABASE_NAME), directory };
}

/** The Temporal development server with its data in `.local/temporal`. */
export async function startEmbeddedTemporal(
  { keep }: Supervisor,
  acquisition: Omit<Acquisition, 'binDirectory'>,
): Promise<TemporalServer> {
  const logFile = freshLog(path.join(logDirectory, 'temporal.log'));
  return startTemporal({
    program: await acquireDevServer({ ...acquisition, binDirectory: path.join(localDirectory, 'bin') }),
    searchAttributes: Object.keys(SEARCH_ATTRIBUTES),
    logFile,
    databaseFile: path.join(localDirectory, 'temporal', 'temporal.db'),
    wishedPort: WISHED_PORT.temporal,
    wishedUiPort: WISHED_PORT.temporalUi,
    onLaunch: (server) =>
      keep({ name: 'Temporal', stage: 'orchestrator', record: server.process, logFile, stop: server.stop }),
  });
}

/** For a root whose clone is closed to other accounts: one open folder per clone, which survives a restart where possible. */
async function reachableDirectory(): Promise<string> {
  const parent = path.join(isWritable('/var/lib') ? '/var/lib' : os.tmpdir(), 'settlement-service');
  const clone = `${path.basename(repositoryRoot)}-${createHash('sha256').update(repositoryRoot).digest('hex').slice(0, 8)}`;
  const directory = path.join(parent, clone);
  await mkdir(directory, { recursive: true });
  await Promise.all([parent, directory].map((folder) => chmod(folder, 0o755)));
  return directory;
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
