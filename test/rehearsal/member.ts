/**
 * The processes of a cluster that a rehearsal kills, stops and starts again, each always on the same address. A killed
 * PostgreSQL is not started again: its standby takes its place.
 */
import path from 'node:path';
import { stopProcess } from '../../scripts/stack/process.ts';
import { apiService, workerService } from '../../scripts/stack/product.ts';
import { type ServiceOptions, startService } from '../../scripts/stack/service.ts';
import type { Member, Supervisor } from '../../scripts/stack/supervisor.ts';

export const WORKERS = ['worker 1', 'worker 2', 'worker 3'] as const;
export const APIS = ['API 1', 'API 2', 'API 3'] as const;
export const PRODUCT_MEMBERS = [...WORKERS, ...APIS] as const;
const MEMBERS = [...PRODUCT_MEMBERS, 'Temporal', 'PostgreSQL'] as const;
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
  readonly temporal: ServiceOptions;
  /** The files that `node` starts. Asked at each start. */
  readonly programs: () => { readonly api: string; readonly worker: string };
  readonly database: { kill(): Promise<void>; replace(): Promise<void> };
};

export function createMembers(plan: Plan, { keep }: Pick<Supervisor, 'keep'>): Members {
  const running = new Map<MemberName, Member>();
  const current = (name: MemberName): Member => {
    const member = running.get(name);
    if (!member) throw new Error(`${name} was not started.`);
    return member;
  };
  const { database } = plan;
  return {
    start: (name) =>
      timed(() =>
        name === 'PostgreSQL'
          ? database.replace()
          : startService(serviceOf(plan, name), async (member) => {
              running.set(name, member);
              await keep(member);
            }),
      ),
    stop: (name) => timed(() => current(name).stop()),
    kill: (name) =>
      timed(() =>
        name === 'PostgreSQL' ? database.kill() : stopProcess(current(name).record, KILL_TIMEOUT_MS, 'SIGKILL'),
      ),
  };
}

/** The sandbox's providers of each worker call the API of the same number. */
function serviceOf(
  { env, apiPorts, logDirectory, temporal, programs }: Plan,
  name: Exclude<MemberName, 'PostgreSQL'>,
): ServiceOptions {
  if (name === 'Temporal') return temporal;
  const [kind = '', ordinal = ''] = name.toLowerCase().split(' ');
  const port = apiPorts[Number(ordinal) - 1] ?? 0;
  const common = {
    env: { ...env, PORT: String(port) },
    logFile: path.join(logDirectory, `${kind}-${ordinal}.log`),
    ordinal,
  };
  return kind === 'api'
    ? apiService({ ...common, program: programs().api, url: `http://127.0.0.1:${port}` })
    : workerService({ ...common, program: programs().worker });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
