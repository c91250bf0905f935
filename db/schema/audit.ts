import { bigint, index, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bytes, moment } from './column.ts';
import { organizations } from './organization.ts';

export const AUDIT_ACTIONS = [
  'review_request',
  'resolve_review_paid',
  'resolve_review_refused',
  'gate_record',
  'gate_approve',
  'gate_revoke',
  'settlement_redispatch',
  'verification_redispatch',
  'delivery_redispatch',
  'subscription_redispatch',
  'settlement_cancel',
  'refund_record',
  'keys_record',
  'keys_reseal',
  'delivery_retry',
  'key_reissue_request',
  'key_reissue',
  'recipient_erase_request',
  'recipient_erase',
  'recipient_export',
  'operator_add',
  'operator_revoke',
  'key_revoke',
  'organization_suspend',
  'organization_resume',
  'organization_tier',
  'organization_limit',
  'webhook_disable',
  'webhook_enable',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/**
 * What operators did, and why, in their own words. Only operators read it. A trigger makes entries permanent, and their
 * chain shows what was changed all the same.
 */
export const auditEntries = pgTable(
  'audit_entries',
  {
    auditId: text('audit_id').primaryKey(),
    /** The organization of the object; null for the whole service. */
    orgId: text('org_id').references(() => organizations.orgId),
    objectId: text('object_id').notNull(),
    action: text('action').$type<AuditAction>().notNull(),
    operator: text('operator').notNull(),
    note: text('note').notNull(),
    at: moment('at').notNull(),
    /** Its place in the chain, from 1, in the order of commit (db/audit-chain.ts). */
    sequence: bigint('sequence', { mode: 'number' }).notNull(),
    /** Of the entry before it. */
    previousHash: bytes('previous_hash').notNull(),
    hash: bytes('hash').notNull(),
  },
  (table) => [
    index('audit_entries_object').on(table.objectId, table.at),
    uniqueIndex('audit_entries_sequence').on(table.sequence),
  ],
);
