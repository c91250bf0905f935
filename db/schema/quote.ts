import { bigint, index, pgTable, text } from 'drizzle-orm/pg-core';
import type { CorridorId, Rail } from '../../domain/corridor.ts';
import type { Currency } from '../../domain/money.ts';
import type { InputMethod } from '../../domain/payment-method.ts';
import { moment } from './column.ts';

/** The inputs of a consumer's estimate, in months. A transfer copies them. A trigger refuses any change. */
export const quotes = pgTable(
  'quotes',
  {
    quoteId: text('quote_id').primaryKey(),
    orgId: text('org_id').notNull(),
    corridor: text('corridor').$type<CorridorId>().notNull(),
    amountMinor: bigint('amount_minor', { mode: 'bigint' }).notNull(),
    sourceCurrency: text('source_currency').$type<Currency>().notNull(),
    paymentMethod: text('payment_method').$type<InputMethod>().notNull(),
    payoutRail: text('payout_rail').$type<Rail>().notNull(),
    createdAt: moment('created_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
  },
  (table) => [index('quotes_org').on(table.orgId, table.createdAt)],
);
