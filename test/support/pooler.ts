/** A real PgBouncer that pools transactions. There is no package of a current one: `PGBOUNCER_PATH` names a program. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { freePort, isListening } from '../../scripts/stack/port.ts';
import { type Account, serverAccount } from '../../scripts/stack/postgres-program.ts';
import { until } from './wait.ts';

export type Pooler = {
  readonly pid: number;
  readonly logFile: string;
  /** The same address, by way of the pooler. */
  through(databaseUrl: string): string;
  close(): Promise<void>;
};

export type PoolerOptions = {
  /** The program. */
  readonly program: string;
  /** Each with its password, and all on one server. */
  readonly databaseUrls: readonly string[];
  /** More settings, or others. */
  readonly settings?: Readonly<Record<string, string | number>>;
};

const SETTINGS = {
  listen_addr: '127.0.0.1',
  unix_socket_dir: '',
  auth_type: 'scram-sha-256',
  pool_mode: 'transaction',
  max_prepared_statements: 200,
  max_client_conn: 1_000,
  default_pool_size: 20,
  query_wait_timeout: 3,
  server_login_retry: 1,
  log_connections: 0,
  log_disconnections: 0,
};
const START_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

/** Why tests of a pooler cannot run here; undefined when they can. */
export const whyNoPooler = (): string | undefined =>
  process.env['PGBOUNCER_PATH']
    ? undefined
    : 'PGBOUNCER_PATH names no PgBouncer 1.21 or later: nothing is pooled here.';

/** @throws Error when it does not listen */
export async function startPooler({ program, databaseUrls, settings }: PoolerOptions): Promise<Pooler> {
  const [{ hostname, port: serverPort } = { hostname: '', port: '' }] = databaseUrls.map((url) => new URL(url));
  const folder = await mkdtemp(path.join(os.tmpdir(), 'settlement-pooler-'));
  const account = await serverAccount();
  const port = await freePort();
  const file = (name: string) => path.join(folder, name);
  const all = { ...SETTINGS, listen_port: port, auth_file: file('users'), ...settings };
  const lines = Object.entries(all)
    .filter(([, v]) => v !== undefined)
    .map(([name, value]) => `${name} = ${value}`);
  await writeOwned(file('users'), databaseUrls.map(userLine).join(''), account);
  const databases = `[databases]\n* = host=${hostname} port=${serverPort}\n`;
  await writeOwned(file('pgbouncer.ini'), `${databases}[pgbouncer]\n${lines.join('\n')}\n`, account);
  await chmod(folder, 0o755);
  const log = openSync(file('log'), 'a');
  const child = spawn(program, [file('pgbouncer.ini')], { ...account, cwd: '/', stdio: ['ignore', log, log] });
  closeSync(log);
  const ended = once(child, 'exit');
  const close = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const patience = { timeoutMs: START_TIMEOUT_MS, everyMs: POLL_MS };
    await until('PgBouncer that listens', () => isListening(port), patience);
  } catch (error) {
    const cause = await readFile(file('log'), 'utf8');
    await close();
    throw new Error(`PgBouncer did not start: ${cause.trim() || 'its log is empty'}`, { cause: error });
  }
  const { pid = 0 } = child;
  return {
    pid,
    logFile: file('log'),
    through: (databaseUrl) => Object.assign(new URL(databaseUrl), { port: String(port) }).href,
    close,
  };
}

const userLine = (databaseUrl: string): string => {
  const { username, password } = new URL(databaseUrl);
  return `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`;
};

async function writeOwned(name: string, text: string, { uid, gid }: Account): Promise<void> {
  await writeFile(name, text, { mode: 0o600 });
  if (uid !== undefined && gid !== undefined) await chown(name, uid, gid);
}
