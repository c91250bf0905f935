import { integer, jsonb, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { CountedKind, OwnLimits, Tier } from '../../domain/quota.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import { moment, reference } from './column.ts';

/** Tenants. A consumer is a tenant too, so that ownership follows one rule everywhere (contract §12). */
export const organizations = pgTable('organizations', {
  orgId: text('org_id').primaryKey(),
  kind: text('kind').$type<'partner' | 'consumer'>().notNull(),
  name: text('name').notNull(),
  country: text('country').notNull(),
  contactEmail: text('contact_email').notNull(),
  environment: text('environment').$type<EnvironmentName>().notNull(),
  createdAt: moment('created_at').notNull(),
  suspendedAt: moment('suspended_at'),
  tier: text('tier').$type<Tier>().notNull().default('standard'),
  /** What an operator gave to this organization alone. */
  limits: jsonb('limits').$type<OwnLimits>().notNull().default({}),
});

/** How many objects of a kind an organization has created. They are never deleted. */
export const quotaUses = pgTable(
  'quota_uses',
  {
    orgId: reference('org_id', () => organizations.orgId),
    kind: text('kind').$type<CountedKind>().notNull(),
    used: integer('used').notNull(),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.kind] })],
);
