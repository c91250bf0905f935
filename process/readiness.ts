/**
 * Readiness of the API and of the worker (contract §15). PostgreSQL takes writes and has at least the migrations of
 * this version: a database that is ahead was migrated for a later version, while this one still serves. This process's
 * clock agrees with PostgreSQL's.
 */

import { type Database, hasAnswered } from '../db/client.ts';
import { migrationCount } from '../db/migrate.ts';
import { type DatabaseProbe, probeDatabase } from '../db/queries/health.ts';
import { asProcess } from '../db/tenant.ts';
import type { TemporalCause, TemporalHealth } from '../domain/temporal-health.ts';

/** How old an answer may be. */
const PROBE_INTERVAL_MS = 1_000;
/** A clock that is off by more judges expiries and signatures wrongly. */
const CLOCK_OFFSET_MAX_MS = 5_000;
/** How often the log repeats what has not changed. */
const REPEAT_MS = 60_000;

export const isClockRight = (offsetMs: number): boolean => Math.abs(offsetMs) <= CLOCK_OFFSET_MAX_MS;

export type Readiness = {
  readonly status: 'ready' | 'not_ready';
  readonly postgres: 'up' | 'read_only' | 'down';
  readonly migrations: { readonly applied: number | null; readonly expected: number };
  readonly clock_offset_ms: number | null;
  readonly temporal: TemporalHealth['status'];
  readonly temporal_cause: TemporalCause | null;
};

export type WorkerReadiness = Readiness & { readonly pollers: 'running' | 'stopped' };

export type ReadinessDeps = {
  readonly db: Database;
  readonly temporalHealth: () => Promise<TemporalHealth>;
  readonly now: () => Date;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
};

/** All requests of a second share one probe: anybody may ask, and asking must cost others nothing. */
export function createReadiness(deps: ReadinessDeps): () => Promise<Readiness> {
  const expected = migrationCount();
  const report = createReport(deps);
  const probe = async (): Promise<Readiness> => {
    const [database, temporal] = await Promise.all([askDatabase(deps), deps.temporalHealth()]);
    const found = { ...judge(database, expected), temporal: temporal.status, temporal_cause: temporal.cause };
    report(found, {
      ...('err' in database && { err: database.err }),
      sentence: temporal.status === 'up' ? undefined : temporal.sentence,
    });
    return found;
  };
  let last: { readonly atMs: number; readonly found: Promise<Readiness> } | undefined;
  return () => {
    const nowMs = deps.now().getTime();
    if (!last || Math.abs(nowMs - last.atMs) >= PROBE_INTERVAL_MS) last = { atMs: nowMs, found: asProcess(probe) };
    return last.found;
  };
}

/** A worker also needs Temporal, and must poll it. */
export const createWorkerReadiness =
  (readiness: () => Promise<Readiness>, arePollersRunning: () => boolean) => async (): Promise<WorkerReadiness> => {
    const found = await readiness();
    const pollers = arePollersRunning() ? 'running' : 'stopped';
    const isReady = found.status === 'ready' && found.temporal === 'up' && pollers === 'running';
    return { ...found, status: isReady ? 'ready' : 'not_ready', pollers };
  };

type DatabaseAnswer = DatabaseProbe & { readonly clockOffsetMs: number };

/** @throws when the database was never migrated or cannot be reached */
export async function measureDatabase({ db, now }: Pick<ReadinessDeps, 'db' | 'now'>): Promise<DatabaseAnswer> {
  const askedMs = performance.now();
  const found = await probeDatabase(db);
  const endMs = now().getTime();
  const startMs = endMs - (performance.now() - askedMs);
  // PostgreSQL read its clock at an unknown moment between the question and the answer, which a busy database delays.
  const databaseMs = found.now.getTime();
  const offsetMs = Math.max(0, startMs - databaseMs) + Math.min(0, endMs - databaseMs);
  return { ...found, clockOffsetMs: Math.round(offsetMs) };
}

type Asked = DatabaseAnswer | { readonly err: unknown };

const askDatabase = (deps: ReadinessDeps): Promise<Asked> => measureDatabase(deps).catch((err: unknown) => ({ err }));

function judge(database: Asked, expected: number) {
  if ('err' in database)
    return {
      status: 'not_ready',
      postgres: hasAnswered(database.err) ? 'up' : 'down',
      migrations: { applied: null, expected },
      clock_offset_ms: null,
    } as const;
  const { applied, isReadOnly, clockOffsetMs } = database;
  return {
    status: applied >= expected && !isReadOnly && isClockRight(clockOffsetMs) ? 'ready' : 'not_ready',
    postgres: isReadOnly ? 'read_only' : 'up',
    migrations: { applied, expected },
    clock_offset_ms: clockOffsetMs,
  } as const;
}

/** Logs what is wrong at once, and again each minute. */
function createReport({ log }: ReadinessDeps) {
  let said: { readonly what: string; readonly atMs: number } | undefined;
  return (found: Readiness, { sentence, ...error }: { sentence: string | undefined; err?: unknown }): void => {
    const isClockWrong = !isClockRight(found.clock_offset_ms ?? 0);
    if (found.status === 'ready' && sentence === undefined) {
      said = undefined;
      return;
    }
    const what = [found.status, found.postgres, found.temporal_cause, isClockWrong].join();
    const nowMs = performance.now();
    if (said?.what === what && nowMs - said.atMs < REPEAT_MS) return;
    said = { what, atMs: nowMs };
    const reason = isClockWrong ? "this process's clock differs from PostgreSQL's" : sentence;
    log.warn(
      { ...found, reason, ...error },
      found.status === 'ready' ? 'Temporal cannot be used' : 'the process is not ready',
    );
  };
}
