import { pgTable, text } from 'drizzle-orm/pg-core';
import type { EnvironmentName } from '../../domain/runtime.ts';
import { moment } from './column.ts';

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
});
