import { sql } from 'drizzle-orm';
import { boolean, check, index, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { RecipientVerificationStatus } from '../../domain/recipient.ts';
import { eventCounter, moment, reference } from './column.ts';
import { organizations } from './organization.ts';

/**
 * Personal data is one text, sealed by the recipient's own key, which the service's key has sealed (contract §4). Both
 * are null once the recipient is erased.
 */
export const recipients = pgTable(
  'recipients',
  {
    recipientId: text('recipient_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    kind: text('kind').$type<'vendor' | 'contractor'>().notNull(),
    entityType: text('entity_type').$type<'individual' | 'business'>().notNull(),
    country: text('country').notNull(),
    dataKeySealed: text('data_key_sealed'),
    personalDataSealed: text('personal_data_sealed'),
    metadata: jsonb('metadata').$type<Record<string, string>>().notNull(),
    isActive: boolean('is_active').notNull(),
    verificationStatus: text('verification_status').$type<RecipientVerificationStatus>().notNull(),
    erasedAt: moment('erased_at'),
    ...eventCounter(),
    createdAt: moment('created_at').notNull(),
    updatedAt: moment('updated_at').notNull(),
  },
  (table) => [
    index('recipients_org').on(table.orgId, table.createdAt, table.recipientId),
    index('recipients_org_filter').on(
      table.orgId,
      table.isActive,
      table.verificationStatus,
      table.createdAt,
      table.recipientId,
    ),
    index('recipients_org_country').on(
      table.orgId,
      table.country,
      table.isActive,
      table.verificationStatus,
      table.createdAt,
      table.recipientId,
    ),
  ],
);

/**
 * One row for each entry of a recipient's metadata, for lists that are filtered by one: its key is that index. A
 * trigger keeps it equal to the recipients.
 */
export const recipientMetadata = pgTable(
  'recipient_metadata',
  {
    orgId: text('org_id').notNull(),
    key: text('key').notNull(),
    value: text('value').notNull(),
    country: text('country').notNull(),
    isActive: boolean('is_active').notNull(),
    verificationStatus: text('verification_status').$type<RecipientVerificationStatus>().notNull(),
    createdAt: moment('created_at').notNull(),
    recipientId: reference('recipient_id', () => recipients.recipientId),
  },
  (table) => [
    primaryKey({
      name: 'recipient_metadata_pk',
      columns: [
        table.orgId,
        table.key,
        table.value,
        table.country,
        table.isActive,
        table.verificationStatus,
        table.createdAt,
        table.recipientId,
      ],
    }),
  ],
);

/** Requests to erase a recipient. Another operator than the first one confirms it. */
export const recipientErasures = pgTable(
  'recipient_erasures',
  {
    erasureId: text('erasure_id').primaryKey(),
    recipientId: reference('recipient_id', () => recipients.recipientId),
    requestedBy: text('requested_by').notNull(),
    requestedAt: moment('requested_at').notNull(),
    /** Until then it can be confirmed. */
    expiresAt: moment('expires_at').notNull(),
    confirmedBy: text('confirmed_by'),
  },
  (table) => [
    index('recipient_erasures_recipient').on(table.recipientId, table.requestedAt),
    check('recipient_erasures_two_operators', sql`${table.confirmedBy} IS DISTINCT FROM ${table.requestedBy}`),
  ],
);
