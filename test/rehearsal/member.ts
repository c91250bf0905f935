/**
 * The processes of a cluster that a rehearsal kills, stops and starts again, each always on the same address.
 * PostgreSQL is not one of them: test/faults kills it.
 */
import path from 'node:path';
import { stopProcess } from '../../scripts/stack/process.ts';
import { apiService, workerService } from '../../scripts/stack/product.ts';
import { type ServiceOptions, startService } from '../../scripts/stack/service.ts';
import type { Member, Supervisor } from '../../scripts/stack/supervisor.ts';

export const PRODUCT_MEMBERS = ['API 1', 'API 2', 'worker 1', 'worker 2'] as const;
export const MEMBERS = [...PRODUCT_MEMBERS, 'Temporal'] as const;
export type MemberName = (typeof MEMBERS)[number];

/** Each call resolves to the milliseconds that it took. */
export type Members = {
  /** Waits until it is ready. */
  start(name: MemberName): Promise<number>;
  /** SIGTERM; waits until the process has ended. */
  stop(name: MemberName): Promise<number>;
  /** SIGKILL: the process cannot finish anything. */
  kill(name: MemberName): Promise<number>;
};

const KILL_TIMEOUT_MS = 10_000;

type Plan = {
  readonly env: NodeJS.ProcessEnv;
  readonly apiPorts: readonly number[];
  readonly logDirectory: string;
  readonly logLevel: string;
  readonly temporal: ServiceOptions;
};

export function createMembers(plan: Plan, { keep }: Pick<Supervisor, 'keep'>): Members {
  const options = servicesOf(plan);
  const running = new Map<MemberName, Member>();
  const current = (name: MemberName): Member => {
    const member = running.get(name);
    if (!member) throw new Error(`${name} was not started.`);
    return member;
  };
  return {
    start: (name) =>
      timed(() =>
        startService(options[name], async (member) => {
          running.set(name, member);
          await keep(member);
        }),
      ),
    stop: (name) => timed(() => current(name).stop()),
    kill: (name) => timed(() => stopProcess(current(name).record, KILL_TIMEOUT_MS, 'SIGKILL')),
  };
}

/** Each worker's sandbox providers call one of the APIs, so one of the two workers can go on while an API is down. */
function servicesOf({
  env,
  apiPorts: [first = 0, second = 0],
  logDirectory,
  logLevel,
  temporal,
}: Plan): Readonly<Record<MemberName, ServiceOptions>> {
  const common = (file: string, port: number) => ({
    env: { ...env, PORT: String(port) },
    logFile: path.join(logDirectory, file),
    logLevel,
  });
  const api = (ordinal: string, port: number) =>
    apiService({ ...common(`api-${ordinal}.log`, port), ordinal, url: `http://127.0.0.1:${port}` });
  const worker = (ordinal: string, port: number) =>
    workerService({ ...common(`worker-${ordinal}.log`, port), ordinal });
  return {
    'API 1': api('1', first),
    'API 2': api('2', second),
    'worker 1': worker('1', first),
    'worker 2': worker('2', second),
    Temporal: temporal,
  };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
