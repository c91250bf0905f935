import { pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bytes, moment, reference } from './column.ts';
import { organizations } from './organization.ts';
import { settlements } from './settlement.ts';

/** The exact bytes that were signed and are served (contract §7); a trigger refuses any change. */
export const certificates = pgTable(
  'certificates',
  {
    certId: text('cert_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    settlementId: reference('settlement_id', () => settlements.settlementId),
    content: bytes('content').notNull(),
    sha256: bytes('sha256').notNull(),
    /** Detached Ed25519 JWS; its header names the key. */
    signature: text('signature').notNull(),
    issuedAt: moment('issued_at').notNull(),
  },
  (table) => [uniqueIndex('certificates_settlement').on(table.settlementId)],
);
