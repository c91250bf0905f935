/** The throwaway PostgreSQL of one test run: fast because it may forget everything, with a migrated template database. */
import path from 'node:path';
import pg from 'pg';
import { migrate } from '../../db/migrate.ts';
import type { ProcessRecord } from '../../process/process-record.ts';
import { ensureDatabase, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';

const TEMPLATE = 'settlement_template';

const FORGETFUL = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_size: '256MB',
  max_wal_senders: '0',
  max_connections: '200',
  autovacuum: 'off',
  // Inside the data, so that nothing of a killed server stays behind.
  dynamic_shared_memory_type: 'mmap',
};

/** Starts it under the run's folder; gives the address of the server and the template's name. */
export async function startTestCluster(run: { folder: string; started: (record: ProcessRecord) => Promise<void> }) {
  const program = await postgresProgram(async () => run.folder);
  const cluster = await startCluster({ program, directory: path.join(run.folder, 'postgres'), settings: FORGETFUL });
  await run.started(cluster.process);
  await migrate(await ensureDatabase(cluster, TEMPLATE));
  await closeTemplate(cluster.serverUrl);
  return { serverUrl: cluster.serverUrl, template: TEMPLATE };
}

/** A template is copied only while nobody is connected to it. */
async function closeTemplate(serverUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: `${serverUrl}/postgres` });
  await client.connect();
  await client.query(`ALTER DATABASE ${TEMPLATE} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`);
  await client.end();
}
