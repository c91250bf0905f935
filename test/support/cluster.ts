/** The throwaway PostgreSQL of a test run: fast because it may lose its data, with a migrated template database. */
import path from 'node:path';
import { migrate } from '../../db/migrate.ts';
import { ensureDatabase, serviceUrlOf, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { stopProcess } from '../../scripts/stack/process.ts';
import { queryOnce } from './connection.ts';

const TEMPLATE = 'settlement_template';
const KILL_TIMEOUT_MS = 10_000;

const NOT_DURABLE = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_size: '256MB',
  max_wal_senders: '0',
  max_connections: '200',
  autovacuum: 'off',
  // Inside the data directory, so that it is deleted with the data of a killed server.
  dynamic_shared_memory_type: 'mmap',
};

/** Starts PostgreSQL in the run's folder. `addresses`: for owner and service, and the template's name. */
export async function startTestCluster(folder: string) {
  const program = await postgresProgram(async () => folder);
  const cluster = await startCluster({ program, directory: path.join(folder, 'postgres'), settings: NOT_DURABLE });
  await migrate(await ensureDatabase(cluster, TEMPLATE));
  // A template can be copied only while it has no connections.
  const close = `ALTER DATABASE ${TEMPLATE} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`;
  await queryOnce(`${cluster.serverUrl}/postgres`, close);
  return {
    addresses: { serverUrl: cluster.serverUrl, serviceUrl: serviceUrlOf(cluster.serverUrl), template: TEMPLATE },
    /** No clean shutdown: the data is deleted with the folder. */
    end: () => stopProcess(cluster.process, KILL_TIMEOUT_MS, 'SIGQUIT'),
  };
}
