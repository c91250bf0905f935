/**
 * Watches Temporal for a worker. It says what is wrong there, at once and again, and puts back what the service needs:
 * a namespace that was made anew has neither search attributes nor the schedule of the sweep.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { TemporalHealth } from '../domain/temporal-health.ts';
import { createSweepSchedule, ensureSweepSchedule } from '../process/sweep-schedule.ts';
import type { TemporalClient } from '../process/temporal.ts';
import { temporalFaultOf } from '../process/temporal-health.ts';

/** How often it looks: while Temporal is not up, and while it is. */
const LOOK_MS = { down: 1_000, up: 15_000 } as const;
/** How often the log repeats what is wrong. */
const REPEAT_MS = 60_000;

type WatchDeps = {
  readonly temporal: Pick<TemporalClient, 'client' | 'address' | 'namespace' | 'health' | 'addSearchAttributes'>;
  readonly log: Record<'info' | 'warn', (fields: Record<string, unknown>, message: string) => void>;
  /** How often it looks; by default, `LOOK_MS`. */
  readonly lookMs?: number;
};

export type TemporalWatch = {
  /** Resolves when Temporal has what the service needs, or when the watch stops. */
  readonly up: Promise<void>;
  stop(): Promise<void>;
};

export function watchTemporal(deps: WatchDeps): TemporalWatch {
  const stopping = new AbortController();
  const report = createReport(deps);
  let resolve: () => void = () => undefined;
  const up = new Promise<void>((settle) => {
    resolve = settle;
  });
  const watch = async (): Promise<void> => {
    // Until this succeeds once, a schedule of an earlier version is changed to that of this one.
    let schedule: typeof ensureSweepSchedule = async (at) => {
      const found = await ensureSweepSchedule(at);
      schedule = createSweepSchedule;
      return found;
    };
    while (!stopping.signal.aborted) {
      const health = await putBack(deps, schedule);
      report(health);
      if (health.status === 'up') resolve();
      const lookMs = health.status === 'up' ? LOOK_MS.up : LOOK_MS.down;
      await delay(deps.lookMs ?? lookMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    resolve();
  };
  const watching = watch();
  return {
    up,
    stop: async () => {
      stopping.abort();
      await watching;
    },
  };
}

/** Resolves when a namespace has what the service needs. */
export async function prepareTemporal(temporal: WatchDeps['temporal']): Promise<void> {
  const watch = watchTemporal({ temporal, log: { info: () => undefined, warn: () => undefined } });
  await watch.up;
  await watch.stop();
}

async function putBack(
  { temporal, log }: WatchDeps,
  schedule: (temporal: WatchDeps['temporal']) => Promise<unknown>,
): Promise<TemporalHealth> {
  let health = await temporal.health();
  try {
    if (health.cause === 'search_attributes_missing') {
      await temporal.addSearchAttributes();
      health = await temporal.health();
    }
    if (health.status === 'up' && (await schedule(temporal)) === 'created')
      log.info({ namespace: temporal.namespace }, 'the schedule of the sweep was created');
    return health;
  } catch (error) {
    // Who may not register attributes has them registered: the cause stays that they are missing.
    if (health.status !== 'up') return health;
    const fault = temporalFaultOf(error);
    if (fault === undefined) log.warn({ err: error }, 'the schedule of the sweep could not be written');
    return fault ?? health;
  }
}

function createReport({ temporal: { address, namespace }, log }: WatchDeps): (health: TemporalHealth) => void {
  let said: { readonly cause: string; readonly atMs: number } | undefined;
  return (health) => {
    if (health.status === 'up') {
      if (said) log.info({ address, namespace }, 'Temporal can be used again');
      said = undefined;
      return;
    }
    const { cause, sentence } = health;
    if (said?.cause === cause && performance.now() - said.atMs < REPEAT_MS) return;
    said = { cause, atMs: performance.now() };
    const repeated = { tried_every_ms: LOOK_MS.down, logged_every_ms: REPEAT_MS };
    log.warn({ address, namespace, cause, reason: sentence, ...repeated }, 'the worker cannot use Temporal');
  };
}
