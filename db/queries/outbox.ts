/**
 * The outbox: rows are written in the transaction of their change, claimed by one dispatcher at a time, and deleted
 * once they are dispatched. A claim is a lease. So no transaction stays open during a call to Temporal, and the rows of
 * a dispatcher that died are claimed again.
 */
import { and, eq, inArray, sql } from 'drizzle-orm';
import type { OutboxKind, OutboxMessage } from '../../domain/outbox.ts';
import type { Queryable, Tx } from '../client.ts';
import { outbox } from '../schema/outbox.ts';
import { currentTraceparent } from '../traceparent.ts';

export type OutboxRow = OutboxMessage & {
  readonly outboxId: number;
  readonly attempts: number;
  /** The trace of the change that wrote the row; null where tracing is off. */
  readonly traceparent: string | null;
};

/** How long no other dispatcher claims the row. */
const LEASE_SECONDS = 10;
const RETRY_SECONDS_MAX = 5;

/** Writes messages in the transaction of the change that they follow from. */
export async function enqueue(tx: Tx, ...messages: OutboxMessage[]): Promise<void> {
  if (messages.length === 0) return;
  const traceparent = currentTraceparent();
  await tx.insert(outbox).values(messages.map((message) => ({ ...message, traceparent })));
}

/** Claims up to `limit` due rows, the oldest ones. */
export async function claimOutbox(db: Queryable, limit: number): Promise<OutboxRow[]> {
  const rows = await db
    .update(outbox)
    .set({ attempts: sql`${outbox.attempts} + 1`, dueAt: sql`now() + make_interval(secs => ${LEASE_SECONDS})` })
    .where(
      sql`${outbox.outboxId} IN (
        SELECT outbox_id FROM outbox WHERE due_at <= now() ORDER BY outbox_id LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`,
    )
    .returning({
      outboxId: outbox.outboxId,
      kind: outbox.kind,
      objectId: outbox.objectId,
      signal: outbox.signal,
      context: outbox.context,
      requestId: outbox.requestId,
      attempts: outbox.attempts,
      traceparent: outbox.traceparent,
    });
  // Only whole messages are written, so each row's signal and context are those of its kind.
  return rows as OutboxRow[];
}

/** Which of these objects have a row that is not dispatched yet. */
export async function listQueued(db: Queryable, kind: OutboxKind, objectIds: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .select({ objectId: outbox.objectId })
    .from(outbox)
    .where(and(eq(outbox.kind, kind), inArray(outbox.objectId, [...objectIds])));
  return new Set(rows.map(({ objectId }) => objectId));
}

/** Deletes dispatched rows. */
/** Whether more than `limit` rows wait; reads at most one row more. */
export async function hasMoreOutboxRows(db: Queryable, limit: number): Promise<boolean> {
  const { rowCount } = await db.execute(sql`SELECT 1 FROM ${outbox} OFFSET ${limit} LIMIT 1`);
  return rowCount === 1;
}

export async function deleteOutbox(db: Queryable, outboxIds: readonly number[]): Promise<void> {
  if (outboxIds.length > 0) await db.delete(outbox).where(inArray(outbox.outboxId, [...outboxIds]));
}

/**
 * Returns rows after a failed dispatch. The time until the next attempt grows.
 *
 * @param reason the kind of the error, never its text
 */
export async function postponeOutbox(db: Queryable, outboxIds: readonly number[], reason: string): Promise<void> {
  if (outboxIds.length === 0) return;
  const waitSeconds = sql`least(${RETRY_SECONDS_MAX}, 0.25 * power(2, least(${outbox.attempts}, 10)))`;
  await db
    .update(outbox)
    .set({ lastError: reason, dueAt: sql`now() + make_interval(secs => ${waitSeconds})` })
    .where(inArray(outbox.outboxId, [...outboxIds]));
}
