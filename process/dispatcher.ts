/**
 * Dispatches the rows of the outbox to Temporal. Every process that commits runs a dispatcher. It looks for rows after
 * each commit, and once a second for rows that another process left. Rows are leased, and calls have a deadline. Every
 * call may happen twice: an existing run serves, and signals carry no data.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Database } from '../db/client.ts';
import { claimOutbox, deleteOutbox, type OutboxRow, postponeOutbox } from '../db/queries/outbox.ts';
import { asProcess } from '../db/tenant.ts';
import { type Crash, dispatchPoint } from '../domain/crash-point.ts';
import { type OutboxMessage, settlementOfMessage } from '../domain/outbox.ts';
import { createDeliveryNotice } from './delivery-notice.ts';
import { temporalFaultOf } from './temporal-health.ts';
import type { Tracing } from './tracing.ts';
import { isKnownKind, rereadMessage, workflowStartOf } from './workflow-start.ts';

const BATCH_SIZE = 32;
/**
 * More calls at once finish no sooner. They wait for each other in Temporal, and when it is busy, all of them miss
 * their deadline and are repeated. A batch in which every call takes until its deadline ends before its lease, unless
 * many of its rows need a second call, because their run exists. Then another process may repeat the calls.
 */
const CALLS_AT_ONCE = 8;
const CALL_TIMEOUT_MS = 2_000;
const POLL_INTERVAL_MS = 1_000;
/**
 * The least time between two claims. A single commit is dispatched at once; commits in quick succession share a claim.
 */
const CLAIM_INTERVAL_MS = 10;
/**
 * The least time between two claims while Temporal accepts nothing. Each commit nudges the dispatcher, and each claim
 * reads all rows that wait for their next attempt.
 */
const CLAIM_INTERVAL_REFUSED_MS = 250;

export type Dispatcher = {
  /** To be called after a commit: it may have written to the outbox, or deliveries. Never waits and never throws. */
  nudge(): void;
  /** Resolves when the current batch has ended. */
  stop(): Promise<void>;
};

export type DispatcherDeps = {
  readonly db: Database;
  readonly client: Client;
  readonly log: Record<'info' | 'warn', (fields: Record<string, unknown>, message: string) => void>;
  readonly traceDispatch?: Tracing['traceDispatch'] | undefined;
  /** Where operators read docs/operations.md. The runs that this dispatcher starts link to it. */
  readonly runbookUrl?: string | undefined;
  /** Only under the torture suite. */
  readonly crash?: Crash | undefined;
};

export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  let stopped = false;
  let nudged = false;
  let running: Promise<void> | undefined;

  let nextClaimMs = Number.NEGATIVE_INFINITY;

  const drain = async (): Promise<void> => {
    while (nudged && !stopped) {
      const waitMs = nextClaimMs - performance.now();
      if (waitMs > 0) await delay(waitMs);
      nudged = false;
      nextClaimMs = performance.now() + CLAIM_INTERVAL_MS;
      const { isFull, isRefused } = await dispatchBatch(deps).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'the outbox could not be read');
        return { isFull: false, isRefused: false };
      });
      nudged ||= isFull;
      if (isRefused) nextClaimMs = performance.now() + CLAIM_INTERVAL_REFUSED_MS;
    }
  };
  const nudge = (): void => {
    nudged = true;
    if (stopped || running) return;
    running = drain().finally(() => {
      running = undefined;
      if (nudged && !stopped) nudge();
    });
  };
  const notifyLanes = createDeliveryNotice(deps.db);
  const timer = setInterval(nudge, POLL_INTERVAL_MS);
  nudge();
  return {
    nudge: () => {
      // It sends what every tenant has committed, so it does not wait in the turn of the one that nudges it.
      asProcess(nudge);
      notifyLanes();
    },
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await running;
    },
  };
}

/** `isFull`: there may be more rows. `isRefused`: there were rows, and Temporal accepted none of them. */
type Batch = { readonly isFull: boolean; readonly isRefused: boolean };

async function dispatchBatch(deps: DispatcherDeps): Promise<Batch> {
  const { db, log, crash, traceDispatch = untraced } = deps;
  const rows = await claimOutbox(db, BATCH_SIZE);
  for (const row of rows) crash?.(dispatchPoint(row, 'after_claim'));
  const results = await dispatchAll(rows, (row) => traceDispatch(row, () => dispatch(deps, row)));
  const rowsOf = (error: string | undefined) =>
    results.flatMap((result) => (result.error === error ? [result.row] : []));
  const dispatched = rowsOf(undefined);
  for (const row of dispatched) crash?.(dispatchPoint(row, 'after_call'));
  await deleteOutbox(
    db,
    dispatched.map(({ outboxId }) => outboxId),
  );
  for (const row of dispatched) crash?.(dispatchPoint(row, 'after_delete'));
  for (const row of dispatched) log.info(fieldsOf(row), 'dispatched');
  const reasons = new Set(results.flatMap(({ error }) => error ?? []));
  for (const reason of reasons) {
    const failed = rowsOf(reason);
    await postponeOutbox(
      db,
      failed.map(({ outboxId }) => outboxId),
      reason,
    );
    log.warn(
      { rows: failed.length, reason, ...(failed.length === 1 && failed[0] ? fieldsOf(failed[0]) : {}) },
      'rows were not dispatched; they are retried',
    );
  }
  return { isFull: rows.length === BATCH_SIZE, isRefused: rows.length > 0 && dispatched.length === 0 };
}

/** The ids by which one settlement is followed through the logs. */
const fieldsOf = (row: OutboxRow): Record<string, unknown> => ({
  kind: row.kind,
  signal: row.signal ?? undefined,
  attempt: row.attempts,
  request_id: row.requestId,
  org_id: row.context.orgId,
  settlement_id: settlementOfMessage(row),
  ...(isKnownKind(row.kind) ? { workflow_id: workflowStartOf(row).options.workflowId } : {}),
});

type DispatchResult = { readonly row: OutboxRow; readonly error: string | undefined };

/** A bounded number of calls at once: each takes the next row as soon as the one before has ended. */
async function dispatchAll(
  rows: readonly OutboxRow[],
  dispatchRow: (row: OutboxRow) => Promise<string | undefined>,
): Promise<DispatchResult[]> {
  const results: DispatchResult[] = [];
  const remaining = rows.values();
  const callNext = async (): Promise<void> => {
    for (const row of remaining) results.push({ row, error: await dispatchRow(row) });
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, callNext));
  return results;
}

const untraced: Tracing['traceDispatch'] = (_row, dispatchRow) => dispatchRow();

/** @returns why the call failed: what is wrong with Temporal, the kind of the error, or what this version lacks */
async function dispatch(
  deps: DispatcherDeps,
  message: OutboxMessage & Pick<OutboxRow, 'startDelayMs'>,
): Promise<string | undefined> {
  // A process of the version that wrote it dispatches it.
  if (!isKnownKind(message.kind)) return 'unknown_kind';
  const { client, runbookUrl } = deps;
  const { startDelayMs } = message;
  const { workflowType, signal, options } = workflowStartOf(message, { runbookUrl, startDelayMs });
  try {
    await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
      if (signal === undefined) await client.workflow.start(workflowType, options);
      else await client.workflow.signalWithStart(workflowType, { ...options, signal, signalArgs: [] });
    });
    return undefined;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) {
      const reread = rereadMessage(message);
      // Without one, the workflow has completed, and needs no signal: its decision is in the database.
      return reread && (await dispatch(deps, { ...reread, startDelayMs }));
    }
    return temporalFaultOf(error)?.cause ?? (error instanceof Error ? error.name : 'unknown');
  }
}
