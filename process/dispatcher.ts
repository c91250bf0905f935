/**
 * Carries the outbox to Temporal. Every process that commits runs one: it is nudged after each commit and looks by
 * itself once a second for what another process left behind. Rows are leased, calls have a deadline, and every call
 * may happen twice: "already started" is success, and signals carry nothing.
 */
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Database } from '../db/client.ts';
import { claimOutbox, deleteOutbox, type OutboxRow, postponeOutbox } from '../db/queries/outbox.ts';
import type { Tracing } from './tracing.ts';
import { workflowStartOf } from './workflow-start.ts';

const BATCH_SIZE = 32;
/**
 * More at once are dispatched no sooner: they wait for each other in Temporal, and where it is busy all of them past
 * their deadline, to be asked for again. Even if every call takes until its deadline, a batch ends before its lease.
 */
const CALLS_AT_ONCE = 8;
const CALL_TIMEOUT_MS = 2_000;
const POLL_INTERVAL_MS = 1_000;

export type Dispatcher = {
  /** Says that something was committed; never waits and never throws. */
  nudge(): void;
  /** Ends after the batch under way. */
  stop(): Promise<void>;
};

export type DispatcherDeps = {
  readonly db: Database;
  readonly client: Client;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
  /** Makes a dispatch part of the trace that its row carries. */
  readonly traceDispatch?: Tracing['traceDispatch'] | undefined;
};

export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  let stopped = false;
  let asked = false;
  let running: Promise<void> | undefined;

  const drain = async (): Promise<void> => {
    while (asked && !stopped) {
      asked = false;
      const full = await dispatchBatch(deps).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'the outbox could not be read');
        return false;
      });
      asked ||= full;
    }
  };
  const nudge = (): void => {
    asked = true;
    if (stopped || running) return;
    running = drain().finally(() => {
      running = undefined;
      if (asked && !stopped) nudge();
    });
  };
  const timer = setInterval(nudge, POLL_INTERVAL_MS);
  nudge();
  return {
    nudge,
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await running;
    },
  };
}

/** @returns whether the batch was full, so that there may be more */
async function dispatchBatch({ db, client, log, traceDispatch = untraced }: DispatcherDeps): Promise<boolean> {
  const rows = await claimOutbox(db, BATCH_SIZE);
  const outcomes = await dispatchAll(rows, (row) => traceDispatch(row, () => dispatch(client, row)));
  const failed = outcomes.filter(({ error }) => error !== undefined);
  await deleteOutbox(
    db,
    outcomes.filter(({ error }) => error === undefined).map(({ row }) => row.outboxId),
  );
  if (failed.length > 0) {
    const reason = failed[0]?.error ?? 'unknown';
    await postponeOutbox(
      db,
      failed.map(({ row }) => row.outboxId),
      reason,
    );
    log.warn({ rows: failed.length, reason }, 'Temporal did not take what was dispatched; it is tried again');
  }
  return rows.length === BATCH_SIZE;
}

type Outcome = { readonly row: OutboxRow; readonly error: string | undefined };

/** In lanes that share what is left: each takes the next row as soon as its call has ended. */
async function dispatchAll(
  rows: readonly OutboxRow[],
  dispatchRow: (row: OutboxRow) => Promise<string | undefined>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const left = rows.values();
  const lane = async (): Promise<void> => {
    for (const row of left) outcomes.push({ row, error: await dispatchRow(row) });
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, lane));
  return outcomes;
}

const untraced: Tracing['traceDispatch'] = (_row, dispatchRow) => dispatchRow();

/** @returns the kind of the error when it did not go through */
async function dispatch(client: Client, row: OutboxRow): Promise<string | undefined> {
  const { workflowType, signal, options } = workflowStartOf(row);
  try {
    await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
      if (signal === undefined) await client.workflow.start(workflowType, options);
      else await client.workflow.signalWithStart(workflowType, { ...options, signal, signalArgs: [] });
    });
    return undefined;
  } catch (error) {
    // A workflow that has ended needs no news: what it decided is in the database.
    if (error instanceof WorkflowExecutionAlreadyStartedError) return undefined;
    return error instanceof Error ? error.name : 'unknown';
  }
}
