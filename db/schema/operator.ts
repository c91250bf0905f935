import { sql } from 'drizzle-orm';
import { check, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bytes, moment } from './column.ts';

/** People who may change things by command. Only a peppered HMAC of an operator's token is stored. */
export const operators = pgTable(
  'operators',
  {
    operatorId: text('operator_id').primaryKey(),
    name: text('name').notNull(),
    tokenHash: bytes('token_hash').notNull(),
    pepperId: text('pepper_id').notNull(),
    addedBy: text('added_by').notNull(),
    addedAt: moment('added_at').notNull(),
    revokedBy: text('revoked_by'),
    revokedAt: moment('revoked_at'),
  },
  (table) => [
    uniqueIndex('operators_token_hash').on(table.tokenHash),
    uniqueIndex('operators_name').on(table.name).where(sql`${table.revokedAt} IS NULL`),
    check('operators_name_spelling', sql`${table.name} = lower(btrim(${table.name})) AND ${table.name} <> ''`),
    check('operators_revocation', sql`(${table.revokedAt} IS NULL) = (${table.revokedBy} IS NULL)`),
  ],
);
