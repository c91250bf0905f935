/** The servers of a process stack: PostgreSQL and Temporal, always on the same ports. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import type { DatabaseUrls } from '../../db/migrate.ts';
import { localDirectory } from '../../process/local/place.ts';
import { isRunning } from '../../process/local/process-record.ts';
import { acquireDevServer } from '../../scripts/stack/binary.ts';
import { type Cluster, ensureDatabase, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { startTemporal, type TemporalServer } from '../../scripts/stack/temporal.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract.ts';

export const SERVERS = ['temporal', 'postgres'] as const;
type Server = (typeof SERVERS)[number];

export async function createServers(folder: string, ports: Readonly<Record<Server, number>>) {
  const postgres = await postgresProgram(async () => folder);
  const temporal = await acquireDevServer({
    env: process.env,
    binDirectory: path.join(localDirectory, 'bin'),
    onProgress: () => undefined,
  });
  const running: { postgres?: Cluster; temporal?: TemporalServer } = {};
  let urls: DatabaseUrls = { databaseUrl: '', migrationUrl: '' };
  return {
    urls: () => urls,
    async start(server: Server): Promise<void> {
      if (server === 'postgres') {
        const options = { program: postgres, directory: path.join(folder, 'postgres'), wishedPort: ports.postgres };
        running.postgres = await startCluster(options);
        urls = await ensureDatabase(running.postgres, 'settlement');
      } else {
        running.temporal = await startTemporal({
          program: temporal,
          searchAttributes: Object.keys(SEARCH_ATTRIBUTES),
          logFile: path.join(folder, 'temporal.log'),
          databaseFile: path.join(folder, 'temporal.db'),
          wishedPort: ports.temporal,
        });
      }
      if (running[server]?.port !== ports[server]) throw new Error(`${server} found its port taken`);
    },
    pidsOf(server: Server): readonly number[] {
      const process = running[server]?.process;
      if (process === undefined || !isRunning(process)) return [];
      return server === 'postgres' ? [process.pid, ...childrenOf(process.pid)] : [process.pid];
    },
    async stop(): Promise<void> {
      await running.temporal?.stop();
      await running.postgres?.stop();
    },
  };
}

/** The child processes; none once the process has ended. */
function childrenOf(pid: number): number[] {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}
