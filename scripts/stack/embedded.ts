/** The PostgreSQL and the Temporal that `npm start` starts when the environment names none. */
import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { DatabaseUrls } from '../../db/migrate.ts';
import { localDirectory, repositoryRoot } from '../../process/place.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';
import { acquireDevServer } from './binary.ts';
import type { Acquisition } from './installation.ts';
import { type Cluster, ensureDatabase, startCluster } from './postgres.ts';
import { canReach, postgresProgram } from './postgres-program.ts';
import { freshLog } from './service.ts';
import type { Supervisor } from './supervisor.ts';
import { databaseFileOf, startTemporal, type TemporalServer } from './temporal.ts';

const DATABASE_NAME = 'settlement';
const WISHED_PORT = { postgres: 55_432, temporal: 7_233, temporalUi: 8_233 };

export const logDirectory = path.join(localDirectory, 'log');

type EmbeddedPostgres = {
  /** The stack's folder below `.local`; by default `.local` itself. */
  readonly folder?: string;
  readonly settings?: Readonly<Record<string, string>>;
};

/** Starts PostgreSQL with its data in `.local/postgres`, or in a folder that its account can reach. */
export async function startEmbeddedPostgres(
  { keep }: Supervisor,
  { folder = '.', settings = {} }: EmbeddedPostgres = {},
): Promise<{ cluster: Cluster; urls: DatabaseUrls; directory: string }> {
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
  return { cluster, urls: await ensureDatabase(cluster, DATABASE_NAME), directory };
}

/** Starts the Temporal development server with its data in `.local/temporal`. */
export async function startEmbeddedTemporal(
  { keep }: Supervisor,
  acquisition: Omit<Acquisition, 'binDirectory'>,
): Promise<TemporalServer> {
  const logFile = freshLog(path.join(logDirectory, 'temporal.log'));
  const program = await acquireDevServer({ ...acquisition, binDirectory: path.join(localDirectory, 'bin') });
  return startTemporal({
    program,
    searchAttributes: Object.keys(SEARCH_ATTRIBUTES),
    logFile,
    databaseFile: await databaseFileOf(program, path.join(localDirectory, 'temporal')),
    wishedPort: WISHED_PORT.temporal,
    wishedUiPort: WISHED_PORT.temporalUi,
    onLaunch: (server) =>
      keep({ name: 'Temporal', stage: 'orchestrator', record: server.process, logFile, stop: server.stop }),
  });
}

/**
 * For root, in a clone that other accounts cannot enter: one open folder for each clone, kept across reboots if
 * possible.
 */
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
