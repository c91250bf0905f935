/**
 * Reads the facts for decisions about a settlement. The locks come first, in a statement of their own: a statement that
 * waits for a lock sees everything else as it was before the wait. One more statement reads all the rest.
 */
import { DomainError } from '../../domain/error.ts';
import type { GateEvidence } from '../../domain/gate.ts';
import type { Recipient } from '../../domain/recipient.ts';
import { PAYOUT_ANSWERS, type RecordedEvidence } from '../../domain/settlement/evidence.ts';
import type { Facts, NameDecision } from '../../domain/settlement/facts.ts';
import type { Settlement } from '../../domain/settlement/state.ts';
import { type Aggregated, jsonListSql } from '../aggregated.ts';
import type { Tx } from '../client.ts';
import { columnsOf, jsonColumns } from '../column-list.ts';
import { dataKeySql } from '../data-key.ts';
import { recipients } from '../schema/recipient.ts';
import { settlements } from '../schema/settlement.ts';
import type { Sealer } from '../seal.ts';
import { statement } from '../statement.ts';
import { gateEvidenceSql, gateLockSql } from './gate.ts';
import { type RecipientRow, recipientLockSql, toRecipient } from './recipient.ts';
import { type SettlementRow, toSettlement } from './settlement.ts';
import { type ExceptionRows, exceptionsOf, exceptionsSql } from './settlement-exception.ts';
import { decisionAboutNameSql } from './verification.ts';

export type LockedSettlement = {
  readonly settlement: Settlement;
  /** The payer's card or account token, sealed; null where the payment method has none. */
  readonly paymentTokenSealed: string | null;
  /** The recipient's, as stored; it opens the frozen payee. */
  readonly dataKeySealed: string | null;
};

/** Facts about a settlement's gates, recipient and verification. */
type Surroundings = Pick<Facts, 'evidence' | 'exceptions'> & {
  readonly recipient: Recipient;
  /** Of the settlement's environment and corridor. */
  readonly gateEvidence: readonly Aggregated<GateEvidence>[];
  /** The latest decision about the payee's name, unless a new verification has replaced it. */
  readonly aboutPayee: NameDecision | undefined;
};

const SETTLEMENT = jsonColumns<SettlementRow>(columnsOf(settlements), 's');
const RECIPIENT = jsonColumns<RecipientRow>(columnsOf(recipients), 'r');

type LockedRow = { readonly settlement: readonly unknown[]; readonly data_key_sealed: string | null };

const lockStatement = statement<[orgId: string, settlementId: string], LockedRow>(
  'lock_for_decision',
  `WITH locked AS MATERIALIZED (
    SELECT ${SETTLEMENT.text} AS settlement, recipient_id, environment, corridor
    FROM settlements s WHERE org_id = $1 AND settlement_id = $2 FOR UPDATE
  )
  SELECT settlement, ${dataKeySql('locked.recipient_id')} AS data_key_sealed,
    pg_advisory_xact_lock_shared(${gateLockSql('environment', 'corridor')}),
    pg_advisory_xact_lock_shared(${recipientLockSql('recipient_id')}) FROM locked`,
);

/**
 * Locks a settlement's row until the transaction ends, and keeps the gates of its corridor and its recipient as they
 * are: a revocation, a deactivation and a verification's decision wait for it; other settlements' decisions do not.
 *
 * @throws DomainError `not_found`, for another organization's settlement as well
 */
export async function lockForDecision(tx: Tx, orgId: string, settlementId: string): Promise<LockedSettlement> {
  const [row] = await lockStatement(tx, orgId, settlementId);
  if (!row) throw new DomainError('not_found');
  const stored = SETTLEMENT.rowOf(row.settlement);
  return {
    settlement: toSettlement(stored),
    paymentTokenSealed: stored.paymentTokenSealed,
    dataKeySealed: row.data_key_sealed,
  };
}

/** The evidence of the settlement `$n` that still counts, as a JSON array. */
const evidenceSql = (settlementId: string): string =>
  jsonListSql(`
    SELECT json_build_object('evidenceId', evidence_id, 'kind', kind, 'provider', provider,
      'eventId', event_id, 'amountMinor', amount_minor::text, 'currency', currency, 'failure', failure,
      'pending', pending, 'reversedMinor', reversed_minor::text)
    FROM evidence WHERE settlement_id = ${settlementId}
      AND (pending OR kind IN (${['collection_succeeded', ...PAYOUT_ANSWERS].map((kind) => `'${kind}'`).join(', ')}))
    ORDER BY position`);

type KnownRow = ExceptionRows & { readonly evidence: readonly Aggregated<RecordedEvidence>[] };
type FactRow = KnownRow & {
  readonly recipient: readonly unknown[];
  readonly gate_evidence: readonly Aggregated<GateEvidence>[];
  readonly about_payee: Aggregated<NameDecision> | null;
};

const surroundingsStatement = statement<
  [
    orgId: string,
    recipientId: string,
    environment: string,
    corridor: string,
    settlementId: string,
    nameDigest: Buffer | null,
  ],
  FactRow
>(
  'read_step_facts',
  `SELECT ${RECIPIENT.text} AS recipient,
    ${gateEvidenceSql('$3', '$4')} AS gate_evidence, ${evidenceSql('$5')} AS evidence,
    ${exceptionsSql('$5')} AS exceptions, ${decisionAboutNameSql('r.org_id', 'r.recipient_id', '$6::bytea')} AS about_payee
  FROM recipients r WHERE org_id = $1 AND recipient_id = $2`,
);

/**
 * Reads the facts for a decision about a locked settlement.
 *
 * @param nameDigest of the payee's name (`nameDigest`); null once the recipient is erased
 */
export async function readSurroundings(
  tx: Tx,
  sealer: Sealer,
  settlement: Settlement,
  nameDigest: Buffer | null,
): Promise<Surroundings> {
  const { orgId, recipientId, environment, corridor, settlementId } = settlement;
  const [row] = await surroundingsStatement(tx, orgId, recipientId, environment, corridor, settlementId, nameDigest);
  if (!row) throw new DomainError('not_found');
  const { about_payee: about } = row;
  return {
    recipient: toRecipient(sealer, RECIPIENT.rowOf(row.recipient)),
    gateEvidence: row.gate_evidence,
    evidence: row.evidence.map(evidenceOf),
    exceptions: exceptionsOf(row),
    aboutPayee: about === null ? undefined : { ...about, at: new Date(about.at) },
  };
}

const knownStatement = statement<[settlementId: string], KnownRow>(
  'read_known_facts',
  `SELECT ${evidenceSql('$1')} AS evidence, ${exceptionsSql('$1')} AS exceptions`,
);

/** The evidence of a locked settlement that still counts, oldest first, and its exceptions. */
export async function readKnownFacts(tx: Tx, settlementId: string): Promise<Pick<Facts, 'evidence' | 'exceptions'>> {
  const [row] = await knownStatement(tx, settlementId);
  return { evidence: (row?.evidence ?? []).map(evidenceOf), exceptions: exceptionsOf(row) };
}

const evidenceOf = ({ amountMinor, reversedMinor, ...evidence }: Aggregated<RecordedEvidence>): RecordedEvidence => ({
  ...evidence,
  amountMinor: amountMinor === null ? null : BigInt(amountMinor),
  reversedMinor: BigInt(reversedMinor),
});
