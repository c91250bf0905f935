import { index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, moment, reference } from './column.ts';

/**
 * The evidence that operators recorded for a launch gate, for one environment and one corridor each (contract §14).
 * Names are plain text: a name that the code does not know must be readable and must open nothing. A trigger refuses
 * every change of a row except its one revocation.
 */
export const launchGateEvidence = pgTable(
  'launch_gate_evidence',
  {
    evidenceId: text('evidence_id').primaryKey(),
    gate: text('gate').notNull(),
    environment: text('environment').notNull(),
    corridor: text('corridor').notNull(),
    /** The name of the document where operators keep it. */
    reference: text('reference').notNull(),
    sha256: bytes('sha256').notNull(),
    recordedBy: text('recorded_by').notNull(),
    recordedAt: moment('recorded_at').notNull(),
    expiresAt: moment('expires_at').notNull(),
    revokedBy: text('revoked_by'),
    revokedAt: moment('revoked_at'),
  },
  (table) => [index('launch_gate_evidence_scope').on(table.environment, table.corridor)],
);

/** Who approved the evidence. An operator counts once, however the name is spelled. */
export const launchGateApprovals = pgTable(
  'launch_gate_approvals',
  {
    evidenceId: reference('evidence_id', () => launchGateEvidence.evidenceId),
    operator: text('operator').notNull(),
    approvedAt: moment('approved_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.evidenceId, table.operator] })],
);
