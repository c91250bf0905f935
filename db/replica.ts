/**
 * Lists from a streaming replica, so that reading grows by servers. Each answer has everything that was committed
 * before its request, in whichever process: the request asks the primary how far its log is flushed, and waits until
 * the replica has replayed that much of the same history. Where it does not in time, or fails, the primary answers.
 * What was committed without waiting for the disk (statement.ts) is flushed up to about 0.6 s later.
 */
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { type Connection, causeOf, type Database, isUnavailable, sqlStateOf } from './client.ts';
import { asProcess } from './tenant.ts';

/** Reads a list, or what else is read alone and only shown. `run` may be called twice, and must not write. */
export type ReadList = <Result>(run: (db: Database) => Promise<Result>) => Promise<Result>;

/** Who answered a list. */
export const LIST_SOURCES = ['primary', 'replica'] as const;
export type ListSource = (typeof LIST_SOURCES)[number];

type Options = {
  readonly primary: Connection;
  readonly replica: Connection;
  readonly onAnswer: (source: ListSource) => void;
  /** Is called for the first failure of a series. */
  readonly onFault: (error: unknown) => void;
};

/** For how long a list waits for the replica. A replica in one data center is a few milliseconds late. */
const CATCH_UP_MS = 100;
/**
 * After a list that has waited in vain, lists go to the primary for so long: each would hold one of the few seats of
 * low priority for its wait, and others would be refused.
 */
const LATE_MS = 1_000;
const ASK_INTERVAL_MS = 3;
/** For how long a list waits for one answer of the replica, which costs it a fraction of a millisecond. */
const ANSWER_MS = 500;
/** After a failure, lists go to the primary for so long. */
const PAUSE_MS = 5_000;

/**
 * How far the history of a server goes. After a failover, a replica may follow a history that has ended. After a move to
 * another server, it may still follow the old one: `database` tells databases apart, also of two servers.
 */
type Progress = { readonly database: string; readonly timeline: number; readonly position: bigint };

const DATABASE = `concat((SELECT system_identifier FROM pg_control_system()), '/', current_database()) AS database`;

/** The name of a file of the log begins with its timeline. */
const FLUSHED = `
  SELECT ${DATABASE}, pg_wal_lsn_diff(flushed, '0/0')::text AS position, ('x' || left(pg_walfile_name(flushed), 8))::bit(32)::int AS timeline
  FROM pg_current_wal_flush_lsn() AS flushed`;
/**
 * The position is null on a server that is no replica: it may have been promoted, and then has another history. Who may
 * read all statistics sees a change of the timeline at once, and others after the replica's next restart point.
 */
const REPLAYED = `
  SELECT ${DATABASE}, CASE WHEN pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::text END AS position,
    greatest((SELECT received_tli FROM pg_stat_wal_receiver), min_recovery_end_timeline) AS timeline
  FROM pg_control_recovery()`;

/** Why lists cannot be read from the replica, in one sentence. */
export class ReplicaError extends Error {}

export function createReplicaReads({ primary, replica, onAnswer, onFault }: Options): ReadList {
  const flushed = shared(() => ask(primary.pool, FLUSHED));
  const replayed = shared(() => ask(replica.pool, REPLAYED));
  let pausedUntilMs = 0;
  let isFailing = false;

  const hasCaughtUp = async (): Promise<boolean> => {
    const wanted = await flushed();
    for (const endsAtMs = performance.now() + CATCH_UP_MS; ; ) {
      const { database, timeline, position } = await answered(replayed());
      if (database !== wanted.database)
        throw new ReplicaError('DATABASE_READ_URL leads to another database than DATABASE_URL, or to a copy of it');
      if (timeline !== wanted.timeline)
        throw new ReplicaError(
          `DATABASE_READ_URL leads to a server that does not follow the primary on its timeline ${wanted.timeline}`,
        );
      if (position >= wanted.position) return true;
      if (performance.now() >= endsAtMs) return false;
      await setTimeout(ASK_INTERVAL_MS);
    }
  };
  const pauseFor = (ms: number): void => {
    pausedUntilMs = Math.max(pausedUntilMs, performance.now() + ms);
  };
  const fail = (error: unknown): void => {
    pauseFor(PAUSE_MS);
    if (!isFailing) onFault(error);
    isFailing = true;
  };
  const isUsable = async (): Promise<boolean> => {
    if (performance.now() < pausedUntilMs) return false;
    try {
      const isInTime = await hasCaughtUp();
      if (!isInTime) pauseFor(LATE_MS);
      return isInTime;
    } catch (error) {
      fail(error);
      return false;
    }
  };

  return async (run) => {
    let failure: unknown;
    if (await isUsable()) {
      try {
        const result = await run(replica.db);
        isFailing = false;
        onAnswer('replica');
        return result;
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        failure = error;
      }
    }
    onAnswer('primary');
    const result = await run(primary.db);
    // A replica reports its position without its disk, which may hang. A read that fails on both is not its fault.
    if (failure !== undefined && sqlStateOf(causeOf(failure)) !== CANCELED) fail(failure);
    return result;
  };
}

/** SQLSTATE of a read that a replica has ended, because what it replays would change the read. */
const CANCELED = '40001';

/** @throws Error when there is no answer in time: a replica that has vanished answers nothing */
async function answered<Answer>(asked: Promise<Answer>): Promise<Answer> {
  const isOver = new AbortController();
  try {
    return await Promise.race([asked, refuseLate(isOver.signal)]);
  } finally {
    isOver.abort();
  }
}

async function refuseLate(signal: AbortSignal): Promise<never> {
  await setTimeout(ANSWER_MS, undefined, { signal });
  throw new ReplicaError('the replica does not answer');
}

/** Callers that come while a question is under way share the next one: its answer is not older than they are. */
function shared<Answer>(question: () => Promise<Answer>): () => Promise<Answer> {
  let current: Promise<unknown> = Promise.resolve();
  let next: Promise<Answer> | undefined;
  return () => {
    next ??= current
      .catch(() => undefined)
      .then(() => {
        const asked = asProcess(question);
        current = asked;
        next = undefined;
        return asked;
      });
    return next;
  };
}

async function ask(pool: pg.Pool, text: string): Promise<Progress> {
  const { rows } = await pool.query<{ database: string; position: string | null; timeline: number }>(text);
  const [{ database = '', position = null, timeline = 0 } = {}] = rows;
  if (position === null) throw new ReplicaError('DATABASE_READ_URL leads to no replica');
  return { database, timeline, position: BigInt(position) };
}
