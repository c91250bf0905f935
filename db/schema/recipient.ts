import { boolean, index, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import type { BankDetails, MobileDetails, RecipientVerificationStatus } from '../../domain/recipient.ts';
import { eventCounter, moment } from './column.ts';
import { organizations } from './organization.ts';

/**
 * Account numbers are stored sealed (AES-256-GCM, key id inside), with their last four characters in clear (contract
 * §4).
 */
export const recipients = pgTable(
  'recipients',
  {
    recipientId: text('recipient_id').primaryKey(),
    orgId: text('org_id')
      .notNull()
      .references(() => organizations.orgId),
    kind: text('kind').$type<'vendor' | 'contractor'>().notNull(),
    entityType: text('entity_type').$type<'individual' | 'business'>().notNull(),
    name: text('name').notNull(),
    country: text('country').notNull(),
    email: text('email'),
    phone: text('phone'),
    bankDetails: jsonb('bank_details').$type<BankDetails>(),
    accountNumberSealed: text('account_number_sealed'),
    mobileDetails: jsonb('mobile_details').$type<MobileDetails>(),
    metadata: jsonb('metadata').$type<Record<string, string>>().notNull(),
    isActive: boolean('is_active').notNull(),
    verificationStatus: text('verification_status').$type<RecipientVerificationStatus>().notNull(),
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
