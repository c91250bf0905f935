import { integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, moment } from './column.ts';
import { organizations } from './organization.ts';

/** A key binds a command for ever (contract §6): rows are never changed and never deleted, which a trigger holds. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    orgId: text('org_id')
      .notNull()
      .references(() => organizations.orgId),
    key: text('key').notNull(),
    /** SHA-256 of (method, route, exact body bytes). */
    requestHash: bytes('request_hash').notNull(),
    /** A digest per top-level field, so that a mismatch can name fields without keeping values. */
    fieldDigests: jsonb('field_digests').$type<Record<string, string>>().notNull(),
    resourceId: text('resource_id').notNull(),
    responseStatus: integer('response_status').notNull(),
    responseBody: bytes('response_body').notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.key] })],
);
