/**
 * A Temporal development server on 127.0.0.1, with settings that make it answer in milliseconds: with the default ones
 * it waits up to 50 ms at each dispatch of a task. With a database file, its data survives a restart.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isRunning, type ProcessRecord } from '../../process/local/process-record.ts';
import { freePort, isListening } from './port.ts';
import { startProcess, stopProcess } from './process.ts';

export type TemporalServer = {
  readonly address: string;
  readonly port: number;
  /** Undefined when the server runs without its user interface. */
  readonly uiUrl: string | undefined;
  readonly process: ProcessRecord;
  readonly stop: () => Promise<void>;
};

export type TemporalOptions = {
  /** The `temporal` program. */
  readonly program: string;
  /** Names of the Keyword search attributes that the namespace `default` must have. */
  readonly searchAttributes: readonly string[];
  readonly logFile: string;
  /** The file of the data; without it the data is in memory. */
  readonly databaseFile?: string;
  readonly wishedPort?: number;
  /** Without it there is no user interface. */
  readonly wishedUiPort?: number;
  /** Settings of the server, besides those that make it fast. */
  readonly dynamicConfig?: Readonly<Record<string, number | boolean>>;
  /** Called before the server is healthy, so that its process is recorded when a kill comes before that. */
  readonly onLaunch?: (server: TemporalServer) => Promise<void>;
};

export const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': 2_000,
  'history.timerProcessorMaxPollRPS': 2_000,
  'history.visibilityProcessorMaxPollRPS': 500,
  'system.enableActivityEagerExecution': true,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
};

const run = promisify(execFile);

const START_ATTEMPTS = 3;
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const POLL_MS = 50;
const VERSION_TIMEOUT_MS = 10_000;

/** Starts the server and waits until it answers and has the search attributes. */
export async function startTemporal(options: TemporalOptions): Promise<TemporalServer> {
  mkdirSync(path.dirname(options.logFile), { recursive: true });
  if (options.databaseFile) mkdirSync(path.dirname(options.databaseFile), { recursive: true });
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(options.wishedPort);
    const uiPort = options.wishedUiPort === undefined ? undefined : await freePort(options.wishedUiPort);
    const logged = existsSync(options.logFile) ? statSync(options.logFile).size : 0;
    const server = launch(options, port, uiPort);
    await options.onLaunch?.(server);
    const readLog = () => readFileSync(options.logFile).subarray(logged).toString();
    const fault = await waitUntilHealthy(server, options.searchAttributes, readLog);
    if (fault === undefined) return server;
    await server.stop();
    // Retry only if another program took the port between the probe and the start.
    if (attempt === START_ATTEMPTS || !/address already in use/i.test(readLog()))
      throw new Error(`Temporal did not start: ${fault} (${options.logFile}).`);
  }
}

/**
 * The file for the data of this program. Each minor version of the server has its own: a server does not migrate the
 * tables of an older one, and then fails at every schedule. In an empty file the service restarts the open runs itself.
 */
export async function databaseFileOf(program: string, directory: string): Promise<string> {
  const { stdout } = await run(program, ['--version'], { timeout: VERSION_TIMEOUT_MS });
  const version = /\bServer (\d+\.\d+)/.exec(stdout)?.[1] ?? 'unknown';
  return path.join(directory, `server-${version}.db`);
}

function launch(options: TemporalOptions, port: number, uiPort: number | undefined): TemporalServer {
  const args = serverArguments(options, port, uiPort);
  const record = startProcess({ program: options.program, args, env: process.env, logFile: options.logFile });
  return {
    address: `127.0.0.1:${port}`,
    port,
    uiUrl: uiPort === undefined ? undefined : `http://127.0.0.1:${uiPort}`,
    process: record,
    stop: () => stopProcess(record, STOP_TIMEOUT_MS),
  };
}

function serverArguments(
  { databaseFile, searchAttributes, dynamicConfig }: TemporalOptions,
  port: number,
  uiPort: number | undefined,
): string[] {
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--log-level', 'warn'],
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort)]),
    // A power failure may lose a commit, but a kill of the process does not. PostgreSQL is the record anyway.
    ...(databaseFile
      ? ['--db-filename', databaseFile, '--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL']
      : []),
    ...searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
    ...Object.entries({ ...DYNAMIC_CONFIG, ...dynamicConfig }).flatMap(([name, value]) => [
      '--dynamic-config-value',
      `${name}=${value}`,
    ]),
  ];
}

/** Undefined once the server is ready, otherwise the reason why it is not. */
async function waitUntilHealthy(
  server: TemporalServer,
  searchAttributes: readonly string[],
  readLog: () => string,
): Promise<string | undefined> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  let fault = 'it did not answer';
  while (Date.now() < deadline) {
    if (!isRunning(server.process)) return 'it ended right away';
    // The server logs its address when it listens. This is checked first: another server may answer on the port, and
    // after one refused connection gRPC waits a second before the next attempt.
    if (!hasLoggedAddress(readLog(), server.port) || !(await isListening(server.port))) {
      await sleep(POLL_MS);
      continue;
    }
    try {
      const missing = await missingSearchAttributes(server.address, searchAttributes);
      if (missing.length === 0) return undefined;
      fault = `it lacks the search attributes ${missing.join(', ')}`;
    } catch (error) {
      fault = `it did not answer (${error instanceof Error ? error.message : String(error)})`;
    }
    await sleep(POLL_MS);
  }
  return fault;
}

const hasLoggedAddress = (log: string, port: number): boolean => new RegExp(`Server:\\s+\\S*:${port}\\b`).test(log);

async function missingSearchAttributes(address: string, wanted: readonly string[]): Promise<string[]> {
  // Imported while the server starts: the import takes half a second.
  const { Connection } = await import('@temporalio/client');
  const connection = await Connection.connect({ address, connectTimeout: 1_000 });
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace: 'default' });
    return wanted.filter((name) => !(name in customAttributes));
  } finally {
    await connection.close();
  }
}
