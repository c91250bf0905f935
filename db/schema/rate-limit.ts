import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { moment } from './column.ts';

/** Requests of one caller in the present window. Unlogged: a crash forgets them, and nothing else is lost. */
export const rateLimits = pgTable('rate_limits', {
  caller: text('caller').primaryKey(),
  windowStart: moment('window_start').notNull(),
  used: integer('used').notNull(),
});
