/**
 * The outbox: rows are written in the transaction of their change, claimed by one dispatcher at a time, and deleted
 * once they are dispatched. A claim is a lease. So no transaction stays open during a call to Temporal, and the rows of
 * a dispatcher that died are claimed again.
 */
import { and, eq, inArray, sql } from 'drizzle-orm';
import type { OutboxKind, OutboxMessage } from '../../domain/outbox.ts';
import type { Queryable, Tx } from '../client.ts';
import { outbox } from '../schema/outbox.ts';
import { NOT_WAITING_FOR_DISK, statement } from '../statement.ts';
import { currentTraceparent } from '../traceparent.ts';

export type OutboxRow = OutboxMessage & {
  readonly outboxId: number;
  readonly attempts: number;
  /** Until there is something to do, for a workflow that does not run yet. */
  readonly startDelayMs: number;
  /** The trace of the change that wrote the row; null where tracing is off. */
  readonly traceparent: string | null;
};

/** How long no other dispatcher claims the row. */
const LEASE_SECONDS = 10;
const RETRY_SECONDS_MAX = 5;
/**
 * A run begins by then, and looks itself. No retry waits for longer, but the time of one was made by its sender's clock,
 * and one time out of range would fail the claim of all rows.
 */
const START_DELAY_SECONDS_MAX = 24 * 60 * 60;
/** One claim reserves at most so many of its rows for subscriptions that are due. */
const SUBSCRIPTIONS_MIN = 4;

/**
 * Writes messages in the transaction of the change that they follow from. A subscription has one row that is not
 * claimed. It is locked until the change is committed: a dispatcher that claimed it earlier would not read this change,
 * and no row would be left for it. Subscriptions are given in the order of their ids, so that no two writers deadlock.
 */
export async function enqueue(tx: Tx, ...messages: OutboxMessage[]): Promise<void> {
  if (messages.length === 0) return;
  const traceparent = currentTraceparent();
  await tx
    .insert(outbox)
    .values(messages.map((message) => ({ ...message, traceparent })))
    .onConflictDoUpdate({
      target: outbox.objectId,
      targetWhere: sql`kind = 'webhook_subscription' AND NOT claimed`,
      set: { dueAt: sql`${outbox.dueAt}` },
      // PostgreSQL locks the row that it does not update.
      setWhere: sql`false`,
    });
}

type ClaimedRow = {
  readonly outbox_id: string;
  readonly kind: string;
  readonly object_id: string;
  readonly signal: string | null;
  readonly context: unknown;
  readonly request_id: string;
  readonly attempts: number;
  readonly traceparent: string | null;
};

/**
 * Neither this nor the deletion waits for the disk. If a crash of PostgreSQL loses one, the rows are dispatched once
 * more, which changes nothing. The transaction that wrote a row is durable.
 *
 * A claimed row of a subscription leaves the unique index before its signal is sent: a later commit may be too late for
 * this signal, so it gets a row of its own.
 */
const claimStatement = statement<[limit: number, subscriptionsMin: number, leaseSeconds: number], ClaimedRow>(
  'claim_outbox',
  `WITH ${NOT_WAITING_FOR_DISK},
  first AS MATERIALIZED (
    SELECT outbox_id FROM outbox WHERE kind <> 'webhook_subscription' AND due_at <= now()
    ORDER BY due_at, outbox_id LIMIT $1 - (SELECT count(*) FROM (
      SELECT FROM outbox WHERE kind = 'webhook_subscription' AND due_at <= now() LIMIT $2
    ) reserved) FOR UPDATE SKIP LOCKED
  ), subscriptions AS MATERIALIZED (
    SELECT outbox_id FROM outbox WHERE kind = 'webhook_subscription' AND due_at <= now()
    ORDER BY due_at, outbox_id LIMIT $1 - (SELECT count(*) FROM first) FOR UPDATE SKIP LOCKED
  ), due AS MATERIALIZED (
    SELECT outbox_id FROM first UNION ALL SELECT outbox_id FROM subscriptions
  )
  UPDATE outbox SET attempts = attempts + 1, claimed = true, due_at = now() + make_interval(secs => $3)
  FROM due, not_durable
  WHERE outbox.outbox_id = due.outbox_id
  RETURNING outbox.outbox_id, kind, object_id, signal, context, request_id, attempts, traceparent`,
);

const delayStatement = statement<[webhookIds: readonly string[]], { readonly id: string; readonly ms: number }>(
  'find_start_delays',
  `SELECT webhook_id AS id,
    (least(${START_DELAY_SECONDS_MAX}, greatest(0, extract(epoch FROM retries_at - now()))) * 1000)::integer AS ms
  FROM webhooks WHERE webhook_id = ANY ($1::text[])`,
);

/**
 * How long the workflows of these subscriptions have nothing to do. It is read after their rows are claimed: the claim
 * does not see what is committed while it runs. Who commits after the claim writes another row.
 */
async function findStartDelays(db: Queryable, webhookIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const delays = webhookIds.length === 0 ? [] : await delayStatement(db, webhookIds);
  return new Map(delays.map(({ id, ms }) => [id, ms]));
}

/**
 * Claims up to `limit` due rows, those that have been due for longest, and those of subscriptions last: no settlement
 * waits behind them. A few rows of subscriptions are always claimed, so that they do not wait without end either.
 *
 * @returns the rows of subscriptions last
 */
export async function claimOutbox(db: Queryable, limit: number): Promise<OutboxRow[]> {
  const claimed = await claimStatement(db, limit, SUBSCRIPTIONS_MIN, LEASE_SECONDS);
  const subscriptions = claimed.filter(({ kind }) => kind === 'webhook_subscription');
  const delays = await findStartDelays(
    db,
    subscriptions.map(({ object_id }) => object_id),
  );
  const rows = claimed.map((row) => toOutboxRow(row, delays.get(row.object_id) ?? 0));
  const isLast = ({ kind }: OutboxRow): number => (kind === 'webhook_subscription' ? 1 : 0);
  return rows.sort((a, b) => isLast(a) - isLast(b) || a.outboxId - b.outboxId);
}

/** Only whole messages are written, so each row's signal and context are those of its kind. */
const toOutboxRow = ({ outbox_id, object_id, request_id, ...row }: ClaimedRow, startDelayMs: number): OutboxRow =>
  ({
    ...row,
    outboxId: Number(outbox_id),
    objectId: object_id,
    requestId: request_id,
    startDelayMs,
  }) as OutboxRow;

/** Which of these objects have a row that is not dispatched yet. */
export async function listQueued(db: Queryable, kind: OutboxKind, objectIds: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .select({ objectId: outbox.objectId })
    .from(outbox)
    .where(and(eq(outbox.kind, kind), inArray(outbox.objectId, [...objectIds])));
  return new Set(rows.map(({ objectId }) => objectId));
}

/** Whether more than `limit` rows wait; reads at most one row more. */
export async function hasMoreOutboxRows(db: Queryable, limit: number): Promise<boolean> {
  const { rowCount } = await db.execute(sql`SELECT 1 FROM ${outbox} OFFSET ${limit} LIMIT 1`);
  return rowCount === 1;
}

const removeStatement = statement<[outboxIds: readonly number[]], never>(
  'delete_outbox',
  `WITH ${NOT_WAITING_FOR_DISK}
  DELETE FROM outbox USING not_durable WHERE outbox_id = ANY ($1::bigint[]) AND claimed`,
);

/**
 * Deletes dispatched rows. A row that nobody has claimed is another one: a failover that lost the latest rows gives their
 * numbers out again.
 */
export async function deleteOutbox(db: Queryable, outboxIds: readonly number[]): Promise<void> {
  if (outboxIds.length > 0) await removeStatement(db, outboxIds);
}

const postponeStatement = statement<[outboxIds: readonly number[], reason: string], never>(
  'postpone_outbox',
  `WITH removed AS (
    DELETE FROM outbox WHERE outbox_id = ANY ($1::bigint[]) RETURNING *
  )
  INSERT INTO outbox (outbox_id, kind, object_id, signal, context, request_id, traceparent, attempts, created_at,
    last_error, due_at)
  SELECT outbox_id, kind, object_id, signal, context, request_id, traceparent, attempts, created_at, $2,
    now() + make_interval(secs => least(${RETRY_SECONDS_MAX}, 0.25 * power(2, least(attempts, 10))))
  FROM removed ORDER BY object_id
  ON CONFLICT DO NOTHING`,
);

/**
 * Returns rows after a failed dispatch. The time until the next attempt grows. A subscription's row is dropped when
 * another one was written meanwhile: that one says the same.
 *
 * @param reason the kind of the error, never its text
 */
export async function postponeOutbox(db: Queryable, outboxIds: readonly number[], reason: string): Promise<void> {
  if (outboxIds.length > 0) await postponeStatement(db, outboxIds, reason);
}
