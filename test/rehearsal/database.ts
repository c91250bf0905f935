/** The database of a rehearsal: one address, behind it a primary with a synchronous standby, and before it a pooler. */
import path from 'node:path';
import { execa } from 'execa';
import { findProcess } from '../../process/local/process-record.ts';
import { reachableDirectory } from '../../scripts/stack/outside.ts';
import type { Cluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { stopProcess } from '../../scripts/stack/process.ts';
import type { Supervisor } from '../../scripts/stack/supervisor.ts';
import { startForwarder } from '../support/forwarder.ts';
import { startPooler, whyNoPooler } from '../support/pooler.ts';
import { startStandby } from '../support/standby.ts';

export type Failover = {
  /** The same address, by way of the one that follows the primary. */
  through(databaseUrl: string): string;
  /** Sends SIGKILL to every process of the primary. */
  kill(): Promise<void>;
  /** Promotes the standby. */
  replace(): Promise<void>;
};

type Primary = {
  readonly cluster: Cluster;
  readonly directory: string;
  readonly settings: Readonly<Record<string, string>>;
};

const KILL_TIMEOUT_MS = 10_000;
/** Statements that a released version sends with its connection, and a pooler refuses otherwise. */
const IGNORED = 'statement_timeout,lock_timeout,idle_in_transaction_session_timeout,options';

export async function createFailover(
  { keep }: Supervisor,
  { cluster, directory, settings }: Primary,
): Promise<Failover> {
  const address = await startForwarder(cluster.port);
  const { serverUrl } = cluster;
  const standby = await startStandby({
    program: await postgresProgram(reachableDirectory),
    serverUrl,
    from: directory,
    to: path.join(path.dirname(directory), 'standby'),
    port: cluster.port,
    mode: 'synchronous',
    settings,
  });
  const { process: record, logFile, stop, port } = standby.cluster;
  await keep({ name: 'PostgreSQL, standby', stage: 'database', record, logFile, stop });
  return {
    through: (url) => Object.assign(new URL(url), { port: String(address.port) }).href,
    kill: async () => {
      const { stdout } = await execa('pgrep', ['-P', String(cluster.process.pid)], { reject: false });
      await stopProcess(cluster.process, KILL_TIMEOUT_MS, 'SIGKILL');
      for (const pid of stdout.split('\n').filter(Boolean)) killIfRunning(Number(pid));
    },
    replace: async () => {
      await standby.promote();
      address.pointTo(port);
    },
  };
}

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended with its parent.
  }
}

/** @returns the environment of the processes behind the pooler, or why there is none */
export async function startPool(
  { keep }: Supervisor,
  databaseUrl: string,
): Promise<{ readonly DATABASE_URL: string; readonly DATABASE_LISTEN_URL: string } | string> {
  const missing = whyNoPooler();
  if (missing !== undefined) return missing;
  const program = process.env['PGBOUNCER_PATH'] ?? '';
  const settings = { ignore_startup_parameters: IGNORED, default_pool_size: 30 };
  const pooler = await startPooler({ program, databaseUrls: [databaseUrl], settings });
  const record = findProcess(pooler.pid);
  if (!record) throw new Error('PgBouncer ended right after its start.');
  await keep({ name: 'PgBouncer', stage: 'orchestrator', record, logFile: pooler.logFile, stop: pooler.close });
  return { DATABASE_URL: pooler.through(databaseUrl), DATABASE_LISTEN_URL: databaseUrl };
}
