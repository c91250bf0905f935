/**
 * What an activity decides a settlement's next step by. The locks come first, in a statement of their own: a statement
 * that waits for a lock sees everything else as it was before the wait. One more statement reads all the rest.
 */
import { DomainError } from '../../domain/error.ts';
import type { Evidence } from '../../domain/evidence.ts';
import type { GateEvidence } from '../../domain/gate.ts';
import type { Recipient } from '../../domain/recipient.ts';
import type { Settlement } from '../../domain/settlement.ts';
import type { Aggregated } from '../aggregated.ts';
import type { Tx } from '../client.ts';
import { aliasedColumns, columnsOf } from '../column-list.ts';
import { recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import { statement } from '../statement.ts';
import { gateEvidenceSql, gateLockSql } from './gate.ts';
import { type RecipientRow, toRecipient } from './recipient.ts';
import { type SettlementRow, toSettlement } from './settlement.ts';

export type LockedStep = {
  readonly settlement: Settlement;
  /** The payer's card or account token, sealed; null where the payment method has none. */
  readonly paymentTokenSealed: string | null;
};

export type StepFacts = {
  readonly recipient: Recipient;
  /** Of the settlement's environment and corridor. */
  readonly gateEvidence: readonly Aggregated<GateEvidence>[];
  /** Evidence that nothing was decided by yet, oldest first. */
  readonly pending: readonly Evidence[];
  /** Every collection that succeeded, oldest first. */
  readonly collections: readonly Evidence[];
};

const SETTLEMENT = aliasedColumns<SettlementRow>(columnsOf(settlements), 's');
const RECIPIENT = aliasedColumns<RecipientRow>(columnsOf(recipients), 'r');

const lock = statement<[orgId: string, settlementId: string], Record<string, unknown>>(
  'lock_step',
  `WITH locked AS MATERIALIZED (
    SELECT ${SETTLEMENT.names} FROM settlements s WHERE org_id = $1 AND settlement_id = $2 FOR UPDATE
  )
  SELECT locked.*, pg_advisory_xact_lock_shared(${gateLockSql('"s.environment"', '"s.corridor"')}) FROM locked`,
);

/**
 * Locks a settlement's row, and keeps the gates of its corridor as they are, until the transaction ends. A revocation
 * waits for it; other steps do not.
 *
 * @throws DomainError `not_found`, for another organization's settlement as well
 */
export async function lockStep(tx: Tx, orgId: string, settlementId: string): Promise<LockedStep> {
  const [row] = await lock(tx, orgId, settlementId);
  if (!row) throw new DomainError('not_found');
  const stored = SETTLEMENT.rowOf(row);
  return { settlement: toSettlement(stored), paymentTokenSealed: stored.paymentTokenSealed };
}

type EvidenceJson = Aggregated<Evidence> & { readonly pending: boolean };
type FactRow = Record<string, unknown> & {
  readonly gate_evidence: readonly Aggregated<GateEvidence>[];
  readonly evidence: readonly EvidenceJson[];
};

const read = statement<
  [orgId: string, recipientId: string, environment: string, corridor: string, settlementId: string],
  FactRow
>(
  'read_step_facts',
  `SELECT ${RECIPIENT.names}, ${gateEvidenceSql('$3', '$4')} AS gate_evidence, (
    SELECT coalesce(jsonb_agg(jsonb_build_object('evidenceId', evidence_id, 'kind', kind,
      'amountMinor', amount_minor::text, 'currency', currency, 'failure', failure, 'pending', pending
    ) ORDER BY position), '[]')
    FROM evidence WHERE settlement_id = $5 AND (pending OR kind = 'collection_succeeded')
  ) AS evidence
  FROM recipients r WHERE org_id = $1 AND recipient_id = $2`,
);

/** Reads what a locked settlement's next step is decided by. */
export async function readStepFacts(tx: Tx, settlement: Settlement): Promise<StepFacts> {
  const { orgId, recipientId, environment, corridor, settlementId } = settlement;
  const [row] = await read(tx, orgId, recipientId, environment, corridor, settlementId);
  if (!row) throw new DomainError('not_found');
  return {
    recipient: toRecipient(RECIPIENT.rowOf(row)),
    gateEvidence: row.gate_evidence,
    pending: row.evidence.filter(({ pending }) => pending).map(evidenceOf),
    collections: row.evidence.filter(({ kind }) => kind === 'collection_succeeded').map(evidenceOf),
  };
}

const evidenceOf = ({ pending: _pending, amountMinor, ...evidence }: EvidenceJson): Evidence => ({
  ...evidence,
  amountMinor: amountMinor === null ? null : BigInt(amountMinor),
});
