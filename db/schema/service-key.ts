import { pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, moment } from './column.ts';

/**
 * The keys that processes have had, by a fingerprint that does not reveal them. One that nothing needs is forgotten.
 */
export const serviceKeys = pgTable(
  'service_keys',
  {
    list: text('list').notNull(),
    keyId: text('key_id').notNull(),
    fingerprint: bytes('fingerprint').notNull(),
    firstUsedAt: moment('first_used_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.list, table.keyId] })],
);
