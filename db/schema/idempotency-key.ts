import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, moment, reference } from './column.ts';
import { organizations } from './organization.ts';

/**
 * A key is permanently bound to its first request (contract §6). A trigger refuses to change or delete a row. Where
 * request or answer have personal data of a recipient, the digests and the answer are one text instead, sealed by the
 * recipient's own key.
 */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    orgId: reference('org_id', () => organizations.orgId),
    key: text('key').notNull(),
    /** SHA-256 of (method, route, exact body bytes). */
    requestHash: bytes('request_hash'),
    /** A digest for each top-level field: a mismatch names the fields, and no values are stored. */
    fieldDigests: jsonb('field_digests').$type<Record<string, string>>(),
    resourceId: text('resource_id').notNull(),
    responseStatus: integer('response_status').notNull(),
    responseBody: bytes('response_body'),
    recipientId: text('recipient_id'),
    exchangeSealed: text('exchange_sealed'),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.key] }),
    index('idempotency_keys_recipient').on(table.recipientId).where(sql`${table.recipientId} IS NOT NULL`),
  ],
);

/** Answers that showed a secret, by their keys, until they expire. */
export const idempotencySecrets = pgTable(
  'idempotency_secrets',
  {
    orgId: reference('org_id', () => organizations.orgId),
    key: text('key').notNull(),
    bodySealed: text('body_sealed').notNull(),
    expiresAt: moment('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.orgId, table.key] }),
    index('idempotency_secrets_expiry').on(table.expiresAt),
  ],
);
