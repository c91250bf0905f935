/**
 * One torture run: scenarios begin at a steady pace while the monkey breaks the stack. Then everything runs again, and
 * once it is quiet the promises are checked. The seed determines the scenarios, the subscribers and the faults.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { CommandError, EXIT } from '../../ops/command-line/program.ts';
import { type ProcessStack, startProcessStack } from '../support/process-stack.ts';
import { SERVICE_ENV } from '../support/provider-event.ts';
import { checkAtRest, checkScenarios } from './check.ts';
import { createHttpClient, type HttpClient } from './client.ts';
import type { CourseDeps } from './course.ts';
import type { RunDisturbance } from './disturbance.ts';
import { checkLogs } from './log.ts';
import { type Fault, type Fired, faultName, releaseMonkey } from './monkey.ts';
import { operatorOf } from './operator.ts';
import { type PlayedScenario, playScenario } from './oracle.ts';
import { type SabotageName, sabotage } from './sabotage.ts';
import { scenarioAt } from './scenario.ts';
import { type Shrunk, shrinkScenario } from './shrink.ts';
import { BEHAVIORS, type Subscriber, type Subscribers, startSubscribers } from './subscriber.ts';
import { createTenant, type Tenant } from './tenant.ts';
import type { Violation } from './violation.ts';

export type RunOptions = {
  readonly seed: number;
  readonly minutes: number;
  /** What the monkey does, if it shall do anything. */
  readonly faults: readonly Fault[];
  readonly sabotage?: SabotageName | undefined;
  /** How long failed scenarios may be shrunk. */
  readonly shrinkMs: number;
  /** Ends the run early. */
  readonly signal?: AbortSignal | undefined;
  /** Is called with a line now and then. */
  readonly say: (line: string) => void;
};

/** How often a fault was planned, and how often it truly happened. */
export type FaultCount = { readonly planned: number; readonly fired: number };

export type RunReport = {
  readonly seed: number;
  readonly minutes: number;
  readonly scenarios: number;
  /** How many settlements ended in each status. */
  readonly ends: Readonly<Record<string, number>>;
  /** By the name of the fault. */
  readonly faults: Readonly<Record<string, FaultCount>>;
  readonly deliveries: number;
  readonly violations: readonly Violation[];
  /** From the first scenario to the first violation, or to the end without one. */
  readonly seconds: number;
  /** The smallest scenario that fails alone on a calm stack, if one does. */
  readonly shrunk: Shrunk | undefined;
};

const TENANTS = 5;
const BEGIN_EVERY_MS = 1_000;
const SAY_EVERY_MS = 20_000;
/** When the service is slower than the pace, the next scenario waits. */
const SCENARIOS_AT_ONCE_MAX = 60;

/** A try to disturb a run of Temporal, and whether it worked. */
type Disturbance = { readonly kind: RunDisturbance; readonly isDone: boolean };
/** More than half of the tries of each kind work, so ten fail together less than once in 1 000 runs. */
const TRIES_MIN = 10;

const interruption = () => new CommandError(EXIT.refused, 'The run was interrupted.');

/** @throws CommandError when the run was interrupted */
export async function torture(options: RunOptions): Promise<RunReport> {
  const { seed, minutes, faults, say } = options;
  const stack = await startProcessStack({ env: SERVICE_ENV, hasNetwork: faults.length > 0 });
  const subscribers = await startSubscribers();
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const ended = new AbortController();
  const interrupt = () => ended.abort();
  options.signal?.addEventListener('abort', interrupt, { once: true });
  try {
    if (options.signal?.aborted) throw interruption();
    if (options.sabotage !== undefined) await sabotage(stack.migrationUrl, options.sabotage);
    say(`seed ${seed}: ${minutes} min, ${faults.length} faults planned; logs in ${stack.folder}`);
    const disturbances: Disturbance[] = [];
    const deps = {
      http: createHttpClient(stack.baseUrl),
      temporal: new Client({ connection }),
      operate: operatorOf(stack),
      disturbedAt: stack.disturbedAt,
      signal: ended.signal,
      onDisturbance: (kind: RunDisturbance, isDone: boolean) => void disturbances.push({ kind, isDone }),
    };
    const tenancy = await createTenants(deps.http, subscribers);
    const report = await runPlan({ stack, deps, disturbances, ...tenancy, ended }, options);
    if (options.signal?.aborted) throw interruption();
    return report;
  } finally {
    options.signal?.removeEventListener('abort', interrupt);
    ended.abort();
    await subscribers.close();
    await connection.close();
    await stack.close();
  }
}

/** Each tenant has a healthy subscriber, and one with another behavior. */
async function createTenants(http: HttpClient, subscribers: Subscribers) {
  const listening: Subscriber[] = [];
  const tenants = await Promise.all(
    Array.from({ length: TENANTS }, async (_, index): Promise<Tenant> => {
      const tenant = await createTenant(http);
      const healthy = await subscribers.subscribe(http, tenant, 'healthy');
      const other = await subscribers.subscribe(http, tenant, BEHAVIORS[index % BEHAVIORS.length] ?? 'healthy');
      listening.push(healthy, other);
      return { ...tenant, webhookId: other.webhookId };
    }),
  );
  return { tenants, listening };
}

type Stage = {
  readonly stack: ProcessStack;
  readonly deps: CourseDeps & { readonly http: HttpClient };
  readonly disturbances: readonly Disturbance[];
  readonly tenants: readonly Tenant[];
  readonly listening: readonly Subscriber[];
  readonly ended: AbortController;
};

async function runPlan(stage: Stage, options: RunOptions): Promise<RunReport> {
  const { stack, deps, listening, ended } = stage;
  const beginAt = Date.now();
  const monkey = releaseMonkey(stack, options.faults, ended.signal);
  const [played, fired] = await Promise.all([playAll(stage, options, monkey), monkey]);
  const found = played.flatMap(({ violations }) => violations);
  const faults = { ...countFaults(options.faults, fired), ...countDisturbances(stage.disturbances) };
  if (!ended.signal.aborted) {
    await stack.untilReady();
    found.push(...(await checkAtRest(stack.databaseUrl, deps.temporal, listening)));
    found.push(...(await checkScenarios(deps.http, played)));
    found.push(...deps.http.broken.map((detail) => ({ rule: 'no request is answered 500', detail })));
    found.push(...notFired(faults));
    found.push(...(await checkLogs(stack.folder)));
  }
  const seconds = Math.round((Date.now() - beginAt) / 1_000);
  const failed = played.find(({ violations }) => violations.length > 0);
  const canShrink = failed !== undefined && options.shrinkMs > 0 && options.signal?.aborted !== true;
  if (canShrink)
    options.say(`  scenario ${failed.index} failed: playing it again alone, for up to ${options.shrinkMs / 1_000} s`);
  return {
    seed: options.seed,
    minutes: options.minutes,
    scenarios: played.length,
    ends: countEnds(played),
    faults,
    deliveries: listening.reduce((sum, { events }) => sum + events.size, 0),
    violations: found,
    seconds,
    shrunk: canShrink
      ? await shrinkScenario({ ...deps, signal: options.signal ?? new AbortController().signal }, failed.tenant, {
          seed: options.seed,
          index: failed.index,
          timeoutMs: options.shrinkMs,
        })
      : undefined,
  };
}

/** Begins a scenario at each beat, until the time is over and the monkey is done, or a sabotaged run has failed. */
async function playAll(
  { deps, tenants, ended }: Stage,
  { seed, minutes, sabotage: name, say }: RunOptions,
  monkey: Promise<unknown>,
): Promise<PlayedScenario[]> {
  const played: PlayedScenario[] = [];
  const underWay = new Set<Promise<void>>();
  const beginAt = Date.now();
  let saidAt = beginAt;
  let isBroken = true;
  void monkey.finally(() => {
    isBroken = false;
  });
  for (let index = 0; !deps.signal.aborted && (isBroken || Date.now() - beginAt < minutes * 60_000); index += 1) {
    const tenant = tenants[index % tenants.length];
    if (tenant === undefined) break;
    const playing = playScenario(deps, tenant, index, scenarioAt(seed, index)).then((result) => {
      played.push(result);
      underWay.delete(playing);
      if (name !== undefined && result.violations.length > 0) ended.abort();
    });
    underWay.add(playing);
    if (Date.now() - saidAt > SAY_EVERY_MS) {
      saidAt = Date.now();
      const found = played.reduce((sum, { violations }) => sum + violations.length, 0);
      say(`  ${Math.round((saidAt - beginAt) / 1_000)} s: ${played.length} scenarios ended, ${found} violations`);
    }
    if (underWay.size >= SCENARIOS_AT_ONCE_MAX) await Promise.race(underWay);
    await delay(BEGIN_EVERY_MS, undefined, { signal: deps.signal }).catch(() => undefined);
  }
  say(`  ${Math.round((Date.now() - beginAt) / 1_000)} s: ${underWay.size} scenarios are still under way`);
  await Promise.all(underWay);
  return played;
}

function countEnds(played: readonly PlayedScenario[]): Record<string, number> {
  const ends: Record<string, number> = {};
  for (const { last } of played) {
    const status: string = last?.status ?? 'not accepted';
    ends[status] = (ends[status] ?? 0) + 1;
  }
  return ends;
}

function countFaults(plan: readonly Fault[], fired: Fired): Record<string, FaultCount> {
  const counts: Record<string, FaultCount> = {};
  for (const name of plan.map(faultName))
    counts[name] = { planned: (counts[name]?.planned ?? 0) + 1, fired: fired.get(name) ?? 0 };
  return counts;
}

/**
 * A try may find no run, because the settlement has ended. Of a kind that was tried `TRIES_MIN` times or more, one try
 * must have worked.
 */
export function countDisturbances(tried: readonly Disturbance[]): Record<string, FaultCount> {
  const counts: Record<string, FaultCount> = {};
  for (const { kind } of tried) {
    const tries = tried.filter((one) => one.kind === kind);
    const fired = tries.filter(({ isDone }) => isDone).length;
    counts[kind] = { planned: tries.length < TRIES_MIN ? 0 : 1, fired };
  }
  return counts;
}

const notFired = (faults: Readonly<Record<string, FaultCount>>): Violation[] =>
  Object.entries(faults)
    .filter(([, { planned, fired }]) => fired < planned)
    .map(([name, { planned, fired }]) => ({
      rule: 'every planned fault happens',
      detail: `${name}: ${fired} of ${planned}`,
    }));
