/** A streaming standby of a PostgreSQL, from a base backup of it. */

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Cluster, startCluster } from '../../scripts/stack/postgres.ts';
import type { PostgresProgram } from '../../scripts/stack/postgres-program.ts';
import { backUp } from './backup.ts';

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
  readonly settings?: Readonly<Record<string, string>>;
};

const NAME = 'standby';
const STREAMS_TIMEOUT_MS = 30_000;
const POLL_MS = 100;
const STREAMING = `SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1`;

/** Resolves when the standby has all that the primary has, and a commit waits for it if it is synchronous. */
export async function startStandby({ program, serverUrl, from, to, port, mode, settings }: Options): Promise<Standby> {
  await backUp(serverUrl, { from, to, account: program.account }, async () => undefined);
  const signal = path.join(to, 'data', 'standby.signal');
  await writeFile(signal, '');
  const { username, password } = new URL(serverUrl);
  const primary = `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=${NAME}`;
  const cluster = await startCluster({ program, directory: to, settings: { ...settings, primary_conninfo: primary } });
  const isSynchronous = mode === 'synchronous';
  await onServer(serverUrl, async (client) => {
    if (isSynchronous) {
      await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${NAME}'`);
      await client.query('SELECT pg_reload_conf()');
    }
    const end = Date.now() + STREAMS_TIMEOUT_MS;
    while ((await client.query(STREAMING, [isSynchronous ? 'sync' : 'async'])).rowCount !== 1) {
      if (Date.now() > end) throw new Error('the standby does not stream');
      await delay(POLL_MS);
    }
  });
  return {
    cluster,
    promote: () => onServer(cluster.serverUrl, async (client) => void (await client.query('SELECT pg_promote()'))),
  };
}

async function onServer(serverUrl: string, run: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: `${serverUrl}/postgres` });
  await client.connect();
  try {
    await run(client);
  } finally {
    await client.end();
  }
}
