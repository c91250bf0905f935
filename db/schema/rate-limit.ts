import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { moment } from './column.ts';

/** Requests of one caller in the current window. The table is unlogged: a crash empties it and nothing else. */
export const rateLimits = pgTable('rate_limits', {
  caller: text('caller').primaryKey(),
  windowStart: moment('window_start').notNull(),
  used: integer('used').notNull(),
});
