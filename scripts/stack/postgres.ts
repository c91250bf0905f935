/**
 * A PostgreSQL server on one machine: created once, started, found again after a crash, stopped. It listens on
 * 127.0.0.1 only. Its random password is in a file that only its owner can read. Its encoding is UTF-8 and it sorts by
 * code point, whatever the machine's locale.
 */
import { execFile } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import type { DatabaseUrls } from '../../db/migrate.ts';
import { findProcess, isRunning, type ProcessRecord } from '../../process/local/process-record.ts';
import { freePort } from './port.ts';
import type { PostgresProgram } from './postgres-program.ts';
import { stopProcess } from './process.ts';
import { replaceFile } from './replace-file.ts';

/** Arguments of initdb: UTF-8, and texts are compared byte by byte. */
export const LOCALE = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];

export type Cluster = {
  /** The server's address without a database: append its name. */
  readonly serverUrl: string;
  readonly port: number;
  readonly process: ProcessRecord;
  readonly logFile: string;
  /** True when the server was already running. */
  readonly reused: boolean;
  readonly stop: () => Promise<void>;
};

export type ClusterOptions = {
  readonly program: PostgresProgram;
  /** Contains `data/` and `password`. The server's account must be able to enter it. */
  readonly directory: string;
  readonly wishedPort?: number;
  /** By default `postgres.log` in the directory. The server's account must be able to enter its folder. */
  readonly logFile?: string;
  /** More settings of `postgresql.conf`. Durability is on unless they turn it off. */
  readonly settings?: Readonly<Record<string, string>>;
};

const run = promisify(execFile);

/** Owns the databases. */
const SUPERUSER = 'settlement';
const SERVICE_ROLE = 'settlement_service';
const START_ATTEMPTS = 3;
const START_TIMEOUT_SECONDS = 60;
const STOP_TIMEOUT_MS = 15_000;
const TAKEOVER_MS = 10_000;

/** Starts the cluster in `directory`. Creates it if there is none. Takes over a server that already runs there. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const password = await ensureInitialized(options);
  const running = await findRunning(options, password);
  if (running) return running;
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(options.wishedPort);
    try {
      await writeSettings(options, port);
      await pgCtl(options, [
        'start',
        '--wait',
        '--silent',
        `--timeout=${START_TIMEOUT_SECONDS}`,
        `--log=${logFile(options)}`,
      ]);
      return describeCluster(options, password, port, false);
    } catch (error) {
      // pg_ctl may have ended before the server was ready: at a signal, or after its time limit. The server still runs.
      await stopCluster(options.directory);
      // Retry only if another program took the port between the probe and the start.
      const log = await readFile(logFile(options), 'utf8').catch(() => '');
      if (attempt === START_ATTEMPTS || !/could not bind|could not create any TCP/.test(log.slice(-2_000))) {
        throw new Error(`PostgreSQL did not start: ${lastLine(log)} (${logFile(options)}).`, {
          cause: error,
        });
      }
    }
  }
}

/** Stops the server that runs in this directory, if there is one. */
export async function stopCluster(directory: string): Promise<void> {
  const found = postmaster(directory);
  if (found) await stopProcess(found.process, STOP_TIMEOUT_MS, 'SIGINT');
}

/** Creates the database and the role of the service if they are missing. Returns the address for each role. */
export async function ensureDatabase(cluster: Cluster, name: string): Promise<DatabaseUrls> {
  const client = new pg.Client({ connectionString: `${cluster.serverUrl}/postgres` });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
    const found = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [SERVICE_ROLE]);
    const { password } = new URL(serviceUrlOf(cluster.serverUrl));
    if (found.rowCount === 0)
      await client.query(`CREATE ROLE ${SERVICE_ROLE} LOGIN PASSWORD ${client.escapeLiteral(password)}`);
  } finally {
    await client.end();
  }
  const migrationUrl = `${cluster.serverUrl}/${name}`;
  return { databaseUrl: serviceUrlOf(migrationUrl), migrationUrl };
}

/**
 * The same address for the service's role. Its password is derived from the owner's, so that there is one file to keep;
 * the owner's cannot be derived from it.
 */
export function serviceUrlOf(ownerUrl: string): string {
  const url = new URL(ownerUrl);
  url.password = createHmac('sha256', url.password).update(SERVICE_ROLE).digest('base64url');
  url.username = SERVICE_ROLE;
  return url.href;
}

/**
 * Creates the cluster under a temporary name and renames it, so that an interrupted attempt never looks finished.
 * Returns the password.
 */
async function ensureInitialized({ program, directory, settings }: ClusterOptions): Promise<string> {
  const passwordFile = path.join(directory, 'password');
  const data = dataDirectory(directory);
  if (existsSync(data)) return readPassword(passwordFile);
  await mkdir(directory, { recursive: true });
  await removeUnfinished(data);
  // Whatever the umask: the server's account must reach its own closed folder inside.
  await chmod(directory, 0o755);
  const password = randomBytes(24).toString('base64url');
  const fresh = `${data}.${process.pid}`;
  const passwordCopy = `${fresh}.password`;
  await mkdir(fresh, { mode: 0o700 });
  await writeFile(passwordCopy, `${password}\n`, { mode: 0o600 });
  const { uid, gid } = program.account;
  if (uid !== undefined && gid !== undefined)
    await Promise.all([fresh, passwordCopy].map((item) => chown(item, uid, gid)));
  try {
    const access = [`--username=${SUPERUSER}`, `--pwfile=${passwordCopy}`, '--auth=scram-sha-256'];
    const unsynced = settings?.['fsync'] === 'off' ? ['--no-sync'] : [];
    await run(program.initdb, [`--pgdata=${fresh}`, ...LOCALE, ...access, ...unsynced, '--no-instructions'], {
      ...program.account,
      cwd: '/',
    });
    replaceFile(passwordFile, `${password}\n`);
    await rename(fresh, data);
  } finally {
    await Promise.all([fresh, passwordCopy].map((item) => rm(item, { recursive: true, force: true })));
  }
  return password;
}

/** What an interrupted attempt left. */
async function removeUnfinished(data: string): Promise<void> {
  const directory = path.dirname(data);
  const left = (await readdir(directory)).filter((name) => name.startsWith(`${path.basename(data)}.`));
  await Promise.all(left.map((name) => rm(path.join(directory, name), { recursive: true, force: true })));
}

async function readPassword(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new Error(
      `The password of the embedded PostgreSQL is missing (${file}): remove ${path.dirname(file)} to start with empty data.`,
      { cause: error },
    );
  }
}

/**
 * The server that a killed parent left. It is taken over if it answers, or answers after its recovery. If it does not,
 * it is stopped. A pid file is removed if its process has ended, or another program has that pid now.
 */
async function findRunning(options: ClusterOptions, password: string): Promise<Cluster | undefined> {
  const pidFile = path.join(dataDirectory(options.directory), 'postmaster.pid');
  const found = postmaster(options.directory);
  if (!found) {
    await rm(pidFile, { force: true });
    return undefined;
  }
  const deadline = Date.now() + TAKEOVER_MS;
  while (isRunning(found.process) && Date.now() < deadline) {
    if (await answers(serverUrl(password, found.port), dataDirectory(options.directory))) {
      return describeCluster(options, password, found.port, true);
    }
    await sleep(100);
  }
  await stopProcess(found.process, STOP_TIMEOUT_MS, 'SIGQUIT');
  await rm(pidFile, { force: true });
  return undefined;
}

/** The server that runs in this directory, according to its pid file and its command line. */
function postmaster(directory: string) {
  const data = dataDirectory(directory);
  try {
    const [pid = '', , , port = ''] = readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n');
    const running = findProcess(Number.parseInt(pid, 10));
    return running?.command.includes(data) ? { process: running, port: Number.parseInt(port, 10) } : undefined;
  } catch {
    return undefined;
  }
}

async function answers(url: string, data: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: `${url}/postgres`, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory');
    return rows[0]?.data_directory === data;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function describeCluster(
  options: ClusterOptions,
  password: string,
  port: number,
  reused: boolean,
): Promise<Cluster> {
  const found = postmaster(options.directory);
  if (!found) throw new Error(`PostgreSQL ended right after its start (${logFile(options)}).`);
  return {
    serverUrl: serverUrl(password, port),
    port,
    process: found.process,
    logFile: logFile(options),
    reused,
    // SIGINT is the server's fast shutdown: it ends the sessions and writes a checkpoint, so the next start is quick.
    stop: () => stopProcess(found.process, STOP_TIMEOUT_MS, 'SIGINT'),
  };
}

async function writeSettings(options: ClusterOptions, port: number): Promise<void> {
  const { program, directory, settings } = options;
  const data = dataDirectory(directory);
  const log = logFile(options);
  const all = { listen_addresses: '127.0.0.1', unix_socket_directories: '', port: String(port), ...settings };
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'\n`);
  // The server reads this file after postgresql.conf. Only this function writes it.
  const file = path.join(data, 'postgresql.auto.conf');
  await writeFile(file, lines.join(''), { mode: 0o600 });
  const { uid, gid } = program.account;
  if (uid === undefined || gid === undefined) return;
  await chown(file, uid, gid);
  await writeFile(log, '', { flag: 'a', mode: 0o600 });
  await chown(log, uid, gid);
}

async function pgCtl({ program, directory }: ClusterOptions, args: readonly string[]): Promise<void> {
  await run(program.pgCtl, [...args, `--pgdata=${dataDirectory(directory)}`], { ...program.account, cwd: '/' });
}

const dataDirectory = (directory: string): string => path.join(directory, 'data');

const logFile = (options: ClusterOptions): string => options.logFile ?? path.join(options.directory, 'postgres.log');

const serverUrl = (password: string, port: number): string => `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}`;

const lastLine = (log: string): string => log.trim().split('\n').at(-1) || 'its log is empty';
