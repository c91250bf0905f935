/** The PostgreSQL and the Temporal that `npm start` starts when the environment names none. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../config/load.ts';
import type { DatabaseUrls } from '../../db/migrate.ts';
import { localDirectory } from '../../process/local/place.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';
import { acquireDevServer } from './binary.ts';
import { matchKeys } from './data-key.ts';
import type { Acquisition } from './installation.ts';
import { reachableDirectory } from './outside.ts';
import { type Cluster, ensureDatabase, startCluster } from './postgres.ts';
import { canReach, postgresProgram } from './postgres-program.ts';
import { freshLog } from './service.ts';
import type { Supervisor } from './supervisor.ts';
import { databaseFileOf, startTemporal, type TemporalServer } from './temporal.ts';

const DATABASE_NAME = 'settlement';
const WISHED_PORT = { postgres: 55_432, temporal: 7_233, temporalUi: 8_233 };

/** For a benchmark's processes next to those of the stack. */
const CONNECTIONS_MAX = '200';

export const logDirectory = path.join(localDirectory, 'log');

type EmbeddedPostgres = Pick<Config, 'encryptionKeys'> & {
  /** The stack's folder below `.local`; by default `.local` itself. */
  readonly folder?: string;
  readonly settings?: Readonly<Record<string, string>>;
};

/**
 * Starts PostgreSQL with its data in `.local/postgres`, or in a folder that its account can reach.
 *
 * @throws Error in one sentence when the data was sealed with other keys
 */
export async function startEmbeddedPostgres(
  { keep }: Supervisor,
  { encryptionKeys, folder = '.', settings = {} }: EmbeddedPostgres,
): Promise<{ cluster: Cluster; urls: DatabaseUrls; directory: string }> {
  const logs = path.join(localDirectory, folder, 'log');
  await mkdir(logs, { recursive: true });
  const program = await postgresProgram(reachableDirectory);
  const reachesClone = canReach(program.account, logs);
  const home = reachesClone ? localDirectory : await reachableDirectory();
  const directory = path.join(home, folder, 'postgres');
  await matchKeys(directory, encryptionKeys);
  const starting = startCluster({
    program,
    directory,
    settings: { max_connections: CONNECTIONS_MAX, ...settings },
    wishedPort: WISHED_PORT.postgres,
    ...(reachesClone && { logFile: path.join(logs, 'postgres.log') }),
  });
  await keep(
    starting.then(({ process: record, logFile, stop }) => ({
      name: 'PostgreSQL',
      stage: 'database',
      record,
      logFile,
      stop,
    })),
  );
  const cluster = await starting;
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
