import { sql } from 'drizzle-orm';
import { bigserial, boolean, index, integer, jsonb, pgTable, text, timestamp, uniqueIndex } from 'drizzle-orm/pg-core';
import type { OutboxKind, OutboxMessage, OutboxSignal } from '../../domain/outbox.ts';

/** Messages to Temporal. A row is deleted once it was dispatched; every dispatch may happen twice. */
export const outbox = pgTable(
  'outbox',
  {
    outboxId: bigserial('outbox_id', { mode: 'number' }).primaryKey(),
    kind: text('kind').$type<OutboxKind>().notNull(),
    objectId: text('object_id').notNull(),
    signal: text('signal').$type<OutboxSignal>(),
    context: jsonb('context').$type<OutboxMessage['context']>().notNull(),
    requestId: text('request_id').notNull(),
    /** The trace that the change belongs to, as W3C Trace Context writes it; null where tracing is off. */
    traceparent: text('traceparent'),
    attempts: integer('attempts').notNull().default(0),
    /** A dispatcher has claimed it. A later commit needs a row of its own. */
    claimed: boolean('claimed').notNull().default(false),
    /** On the database's clock: the time of a retry is not a business decision. */
    dueAt: timestamp('due_at', { withTimezone: true }).notNull().defaultNow(),
    createdAt: timestamp('created_at', { withTimezone: true }).notNull().defaultNow(),
    lastError: text('last_error'),
  },
  (table) => [
    index('outbox_first_due').on(table.dueAt, table.outboxId).where(sql`${table.kind} <> 'webhook_subscription'`),
    index('outbox_deliveries_due').on(table.dueAt, table.outboxId).where(sql`${table.kind} = 'webhook_subscription'`),
    // One row wakes the delivery of any number of events.
    uniqueIndex('outbox_subscription')
      .on(table.objectId)
      .where(sql`${table.kind} = 'webhook_subscription' AND NOT ${table.claimed}`),
  ],
);
