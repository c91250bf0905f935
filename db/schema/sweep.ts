import { bigint, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import type { SweptKind } from '../../domain/outbox.ts';

/** The sweep for lost runs. A migration inserts the row of each kind, so that a sweep that never runs is noticed. */
export const sweeps = pgTable('sweeps', {
  kind: text('kind').$type<SweptKind>().primaryKey(),
  /** The next sweep looks at the objects after this id; empty: at the first ones. */
  afterId: text('after_id').notNull().default(''),
  /** How many runs were restarted in total. */
  restarted: bigint('restarted', { mode: 'number' }).notNull().default(0),
  /** On the database's clock. */
  finishedAt: timestamp('finished_at', { withTimezone: true }).notNull().defaultNow(),
});
