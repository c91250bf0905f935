/** A streaming standby of a PostgreSQL, from a base backup of it. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Cluster, startCluster } from '../../scripts/stack/postgres.ts';
import type { PostgresProgram } from '../../scripts/stack/postgres-program.ts';
import { backUp } from './backup.ts';
import { onDatabase, queryOnce } from './connection.ts';
import { until } from './wait.ts';

/** Whether a commit waits until the standby has it. */
export const MODES = ['synchronous', 'asynchronous'] as const;
export type Mode = (typeof MODES)[number];

export type Standby = {
  readonly cluster: Cluster;
  /** Makes it the primary. */
  promote(): Promise<void>;
};

type Options = {
  readonly program: PostgresProgram;
  /** The primary's address without a database, as a superuser. */
  readonly serverUrl: string;
  /** The primary's directory, and that of the standby. */
  readonly from: string;
  readonly to: string;
  /** By which port the standby reaches the primary. */
  readonly port: number;
  readonly mode: Mode;
  readonly name?: string;
  readonly settings?: Readonly<Record<string, string>>;
};

const STREAMS_TIMEOUT_MS = 30_000;
const STREAMING = `
  SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1 AND application_name = $2`;

/** Resolves when the standby has all that the primary has, and a commit waits for it if it is synchronous. */
export async function startStandby(options: Options): Promise<Standby> {
  const { program, serverUrl, from, to, port, mode, name = 'standby', settings } = options;
  await backUp(serverUrl, { from, to, account: program.account }, async () => undefined);
  const signal = path.join(to, 'data', 'standby.signal');
  await writeFile(signal, '');
  const { username, password } = new URL(serverUrl);
  const primary = `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=${name}`;
  const cluster = await startCluster({ program, directory: to, settings: { ...settings, primary_conninfo: primary } });
  const isSynchronous = mode === 'synchronous';
  await onDatabase(`${serverUrl}/postgres`, async (client) => {
    if (isSynchronous) {
      await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
      await client.query('SELECT pg_reload_conf()');
    }
    const streams = async () =>
      (await client.query(STREAMING, [isSynchronous ? 'sync' : 'async', name])).rowCount === 1;
    await until('stream to the standby', streams, { timeoutMs: STREAMS_TIMEOUT_MS });
  });
  return {
    cluster,
    promote: async () => void (await queryOnce(`${cluster.serverUrl}/postgres`, 'SELECT pg_promote()')),
  };
}
