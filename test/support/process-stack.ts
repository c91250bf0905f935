/**
 * The service as separate processes, as it is deployed: a durable PostgreSQL, a Temporal server on a file, an API and a
 * worker. A test can kill, stop and restart each of them on the same address, and disturb their connections.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type DatabaseUrls, migrate } from '../../db/migrate.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { type CompiledProgram, compiledPrograms } from '../../scripts/stack/compiled.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { answersReady } from '../../scripts/stack/product.ts';
import { type Network, startNetwork } from './network.ts';
import { stretched } from './patience.ts';
import { createServers, SERVERS } from './process-server.ts';
import { askUntil, until } from './wait.ts';

export const PROGRAMS = ['api', 'worker'] as const;
export type Program = (typeof PROGRAMS)[number];
export const PARTS = [...PROGRAMS, ...SERVERS] as const;
export type Part = (typeof PARTS)[number];

type Env = Readonly<Record<string, string>>;

/** What the stack starts with in place of this version. */
export type OtherVersion = {
  readonly programs: Readonly<Record<Program, string>>;
  migrate(urls: DatabaseUrls): Promise<void>;
};

export type ProcessStackOptions = {
  /** More environment for the API and the worker. */
  readonly env?: Env;
  /** The API and the worker connect through links that can be disturbed. */
  readonly hasNetwork?: boolean;
  /** Opens an address that leads to PostgreSQL's port: the API and the worker connect to it. @returns its port */
  readonly address?: (postgresPort: number) => Promise<number>;
  readonly version?: OtherVersion;
};

export type ProcessStack = {
  readonly baseUrl: string;
  /** As the role of the service. Not through a link: what checks the service is never disturbed. */
  readonly databaseUrl: string;
  /** As the role that owns the tables. */
  readonly migrationUrl: string;
  /** As `databaseUrl`. */
  readonly temporalAddress: string;
  /** For one more program next to the API and the worker. */
  readonly env: Env;
  /** The file that `node` starts. */
  programFile(program: CompiledProgram): string;
  /** Undefined without `hasNetwork`. */
  readonly network: Network | undefined;
  /** The logs and the data. */
  readonly folder: string;
  /** Sends SIGKILL to every process of the part: nothing is flushed. Resolves when its address is free. */
  kill(part: Part): Promise<void>;
  /** Sends SIGTERM, and resolves when the program has ended. */
  stop(program: Program): Promise<void>;
  /** Starts a part that does not run. The API and the worker may still be starting when it resolves. */
  start(part: Part, env?: Env): Promise<void>;
  /**
   * Starts one more API or worker, of this version. An API needs a `PORT` of its own.
   *
   * @returns what sends it SIGTERM, and resolves when it has ended
   */
  startOther(program: Program, env: Env): () => Promise<void>;
  /** Sends SIGSTOP. */
  pause(part: Part): void;
  /** Sends SIGCONT. */
  resume(part: Part): void;
  isRunning(part: Part): boolean;
  /** Resolves with the signal that ended the program, or null when it ended by itself. */
  ended(program: Program): Promise<NodeJS.Signals | null>;
  /** When something was last killed, stopped, started or disturbed, as `Date.now()`. */
  disturbedAt(): number;
  /** Resolves when the API answers that it is ready, or another one at this address. */
  untilReady(url?: string): Promise<void>;
  close(): Promise<void>;
};

const READY_TIMEOUT_MS = stretched(120_000);
const EXIT_TIMEOUT_MS = stretched(10_000);
/** An API opens its connections when it starts: tests start many. */
const CONNECTIONS = '6';
/** A port must be free before the next process can listen on it. */
const PORT_RELEASE_MS = 200;

export async function startProcessStack({
  env = {},
  hasNetwork = false,
  address,
  version,
}: ProcessStackOptions = {}): Promise<ProcessStack> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'settlement-stack-'));
  // The account of PostgreSQL must be able to enter the folder.
  await chmod(folder, 0o755);
  const [postgresPort, temporalPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const ports = { postgres: postgresPort, temporal: temporalPort };
  let disturbedAt = Date.now();
  const disturb = (): void => {
    disturbedAt = Date.now();
  };
  const network = hasNetwork ? await startNetwork(ports, disturb) : undefined;
  const addressPort = await address?.(ports.postgres);
  const servers = await createServers(folder, ports);
  const programs = await compiledPrograms(['api', 'worker', 'ops'], 'with packages');
  const children: Partial<Record<Program, ChildProcess>> = {};
  const baseUrl = `http://127.0.0.1:${apiPort}`;

  const envOf = (databaseUrl: string, temporal: number): Env => ({
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: `127.0.0.1:${temporal}`,
    PORT: String(apiPort),
    LOG_LEVEL: 'warn',
    DATABASE_POOL_MAX: CONNECTIONS,
    ...env,
  });
  const launch = (program: Program, more: Env, file: string): ChildProcess => {
    const database = new URL(servers.urls().databaseUrl);
    const databasePort = network?.port(`${program}-postgres`) ?? addressPort;
    if (databasePort !== undefined) database.port = String(databasePort);
    const own = envOf(database.href, network?.port(`${program}-temporal`) ?? temporalPort);
    const log = openSync(path.join(folder, `${program}.log`), 'a');
    const child = spawn(process.execPath, [file], {
      cwd: repositoryRoot,
      env: { ...process.env, ...own, ...more },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    return child;
  };
  const start: ProcessStack['start'] = async (part, more = {}) => {
    if (isProgram(part)) children[part] = launch(part, more, (version?.programs ?? programs)[part]);
    else await servers.start(part);
    disturb();
  };
  const pidsOf = (part: Part): readonly number[] => {
    if (!isProgram(part)) return servers.pidsOf(part);
    const child = children[part];
    return child?.pid === undefined || hasEnded(child) ? [] : [child.pid];
  };
  const signal = (part: Part, name: NodeJS.Signals): void => {
    disturb();
    for (const pid of pidsOf(part)) {
      try {
        process.kill(pid, name);
      } catch {
        // It has ended meanwhile.
      }
    }
  };
  const ended: ProcessStack['ended'] = async (program) => {
    const child = children[program];
    return child === undefined ? null : await endOf(child);
  };
  const others: ChildProcess[] = [];
  const endOther = async (child: ChildProcess, name: NodeJS.Signals): Promise<void> => {
    disturb();
    if (!hasEnded(child)) child.kill(name);
    await endOf(child);
  };
  const startOther: ProcessStack['startOther'] = (program, more) => {
    const child = launch(program, more, programs[program]);
    others.push(child);
    disturb();
    return () => endOther(child, 'SIGTERM');
  };
  const kill: ProcessStack['kill'] = async (part) => {
    signal(part, 'SIGKILL');
    if (isProgram(part)) return void (await ended(part));
    await askUntil(
      () => pidsOf(part).length,
      (left) => left === 0,
      { timeoutMs: EXIT_TIMEOUT_MS },
    );
    await delay(PORT_RELEASE_MS);
  };
  const stack: ProcessStack = {
    baseUrl,
    get databaseUrl() {
      return servers.urls().databaseUrl;
    },
    get migrationUrl() {
      return servers.urls().migrationUrl;
    },
    temporalAddress: `127.0.0.1:${temporalPort}`,
    get env() {
      return envOf(servers.urls().databaseUrl, temporalPort);
    },
    programFile: (program) => programs[program],
    network,
    folder,
    start,
    startOther,
    kill,
    stop: async (program) => {
      signal(program, 'SIGTERM');
      await ended(program);
    },
    pause: (part) => signal(part, 'SIGSTOP'),
    resume: (part) => signal(part, 'SIGCONT'),
    isRunning: (part) => pidsOf(part).length > 0,
    ended,
    disturbedAt: () => disturbedAt,
    untilReady: async (url = baseUrl) =>
      void (await until('API that is ready', () => answersReady(url), { timeoutMs: READY_TIMEOUT_MS })),
    close: async () => {
      for (const part of PARTS) signal(part, 'SIGCONT');
      await Promise.all([...PROGRAMS.map(kill), ...others.map((child) => endOther(child, 'SIGKILL'))]);
      await servers.stop();
      network?.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  const failWhenEnded = async (program: Program): Promise<never> => {
    await ended(program);
    throw new Error(`the ${program} has ended`);
  };
  try {
    await Promise.all([start('postgres'), start('temporal')]);
    await (version?.migrate ?? migrate)(servers.urls());
    await Promise.all(PROGRAMS.map((program) => start(program)));
    await Promise.race([stack.untilReady(), ...PROGRAMS.map(failWhenEnded)]);
  } catch (error) {
    const logs = await Promise.all(PROGRAMS.map((program) => endOfLog(folder, program)));
    await stack.close();
    throw new Error(`the stack did not start:\n${logs.join('\n')}`, { cause: error });
  }
  return stack;
}

const isProgram = (part: Part): part is Program => PROGRAMS.some((program) => program === part);

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;

async function endOf(child: ChildProcess): Promise<NodeJS.Signals | null> {
  if (!hasEnded(child)) await once(child, 'exit');
  return child.signalCode;
}

const LOG_SHOWN = 2_000;
const endOfLog = async (folder: string, program: Program): Promise<string> => {
  const log = await readFile(path.join(folder, `${program}.log`), 'utf8').catch(() => '');
  return log.slice(-LOG_SHOWN);
};
