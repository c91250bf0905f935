import { sql } from 'drizzle-orm';
import { index, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type {
  DocumentType,
  VerificationProvider,
  VerificationStatus,
  VerificationType,
} from '../../domain/verification.ts';
import { bytes, eventCounter, moment, reference } from './column.ts';
import { organizations } from './organization.ts';
import { recipients } from './recipient.ts';

/**
 * At most one is open per recipient and type (contract §8). A provider's access token is kept in a keyed answer alone,
 * sealed, for its replay. Personal data is sealed by the recipient's own key: the name and the contact that the
 * verification began with, and the name that was verified. Decisions about a name are found by its digest under that key.
 */
export const verifications = pgTable(
  'verifications',
  {
    verificationId: text('verification_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    recipientId: reference('recipient_id', () => recipients.recipientId),
    verificationType: text('verification_type').$type<VerificationType>().notNull(),
    documentType: text('document_type').$type<DocumentType>(),
    documentCountry: text('document_country'),
    status: text('status').$type<VerificationStatus>().notNull(),
    provider: text('provider').$type<VerificationProvider>().notNull(),
    applicantId: text('applicant_id'),
    levelName: text('level_name'),
    subjectSealed: text('subject_sealed').notNull(),
    subjectDigest: bytes('subject_digest').notNull(),
    verifiedNameSealed: text('verified_name_sealed'),
    rejectionReason: text('rejection_reason'),
    requestId: text('request_id').notNull(),
    ...eventCounter(),
    createdAt: moment('created_at').notNull(),
    decidedAt: moment('decided_at'),
    expiresAt: moment('expires_at').notNull(),
  },
  (table) => [
    uniqueIndex('verifications_open')
      .on(table.recipientId, table.verificationType)
      .where(sql`status IN ('pending', 'in_review')`),
    index('verifications_org').on(table.orgId, table.createdAt),
    index('verifications_recipient').on(table.recipientId, table.createdAt, table.verificationId),
    index('verifications_request').on(table.requestId),
  ],
);
