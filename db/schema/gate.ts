import { index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, moment } from './column.ts';

/**
 * What operators recorded to prove a launch gate, each for one environment and one corridor (contract §14). Names are
 * plain text, since what the code does not know must be readable and open nothing. A row is never changed but to
 * revoke it, once, which a trigger holds.
 */
export const launchGateEvidence = pgTable(
  'launch_gate_evidence',
  {
    evidenceId: text('evidence_id').primaryKey(),
    gate: text('gate').notNull(),
    environment: text('environment').notNull(),
    corridor: text('corridor').notNull(),
    /** What the evidence is called where operators keep it. */
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

/** Who approved it; an operator counts once, however often and in whatever spelling. */
export const launchGateApprovals = pgTable(
  'launch_gate_approvals',
  {
    evidenceId: text('evidence_id')
      .notNull()
      .references(() => launchGateEvidence.evidenceId),
    operator: text('operator').notNull(),
    approvedAt: moment('approved_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.evidenceId, table.operator] })],
);
