import { index, pgTable, text } from 'drizzle-orm/pg-core';
import { bytes, moment, reference } from './column.ts';
import { organizations } from './organization.ts';

/** Public tokens that were issued with a link token; each is exchanged once, before it expires (contract §10). */
export const banklinkTokens = pgTable(
  'banklink_tokens',
  {
    /** SHA-256 of the public token. */
    tokenHash: bytes('token_hash').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    /** Only the released version writes it. */
    userReference: text('user_reference'),
    createdAt: moment('created_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    exchangedAt: moment('exchanged_at'),
  },
  (table) => [index('banklink_tokens_expiry').on(table.expiresAt)],
);
