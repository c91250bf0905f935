import { pgTable, text } from 'drizzle-orm/pg-core';
import type { Resolution } from '../../domain/review.ts';
import { moment } from './column.ts';
import { settlements } from './settlement.ts';

/** What operators ask for, and agree on, about a payout with an unknown outcome. Audit entries keep the history. */
export const reviewRequests = pgTable('review_requests', {
  settlementId: text('settlement_id')
    .primaryKey()
    .references(() => settlements.settlementId),
  outcome: text('outcome').$type<Resolution['outcome']>().notNull(),
  requestedBy: text('requested_by').notNull(),
  requestedAt: moment('requested_at').notNull(),
  confirmedBy: text('confirmed_by'),
  agreedAt: moment('agreed_at'),
});
