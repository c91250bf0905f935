/**
 * What providers report about a settlement's money, and what follows from it (contract §6). A provider event becomes at
 * most one piece of evidence, and no evidence is applied twice. Up to the first decision, the order does not matter.
 */
import { type Failure, isTerminal, type Settlement } from './settlement.ts';

export const EVIDENCE_KINDS = [
  'collection_succeeded',
  'collection_failed',
  'dispute_opened',
  'dispute_closed',
  'payout_confirmed',
  'payout_refused',
] as const;
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number];

export type EvidenceProvider = 'cardproc' | 'bankledger' | 'payout_rail' | 'internal';

export const EXCEPTION_TYPES = ['overpaid', 'currency_mismatch', 'late_evidence', 'disputed', 'returned'] as const;
export type ExceptionType = (typeof EXCEPTION_TYPES)[number];

/** `amountMinor` and `currency` are set only if money moved, `failure` only if the provider refused. */
export type Evidence = {
  readonly evidenceId: string;
  readonly kind: EvidenceKind;
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  readonly failure: Failure | null;
};

/** A line of the evidence list in a certificate. */
export type EvidenceFact = { readonly evidenceId: string; readonly kind: EvidenceKind; readonly sha256: string };

export type SettlementException = {
  readonly type: ExceptionType;
  readonly at: Date;
  readonly evidenceId: string | null;
};

/**
 * How a settlement receives new evidence in its current state. `pending` evidence waits until the workflow folds it. A
 * surplus is money that is due back. Other evidence is recorded and changes nothing.
 */
type Reception = {
  readonly pending: boolean;
  readonly exception: ExceptionType | null;
  readonly surplus: boolean;
};

const recorded = (exception: ExceptionType | null, surplus = false): Reception => ({
  pending: false,
  exception,
  surplus,
});

/**
 * Decides how evidence is received. The caller holds the lock on the settlement's row. A bank can take its money back
 * in any state of the settlement that it funded. In review, the rail's answer comes too late: an operator decides.
 */
export function receive(
  settlement: Pick<Settlement, 'status' | 'sourceCurrency' | 'amountMinor' | 'amountReceivedMinor'>,
  evidence: Evidence,
): Reception {
  const collected = evidence.kind === 'collection_succeeded';
  if (collected && evidence.currency !== settlement.sourceCurrency) return recorded('currency_mismatch');
  if (evidence.kind === 'dispute_opened') return recorded('disputed');
  if (evidence.kind === 'dispute_closed') return recorded(null);
  const funded = settlement.amountReceivedMinor >= settlement.amountMinor;
  if (evidence.kind === 'collection_failed' && funded) return recorded('returned');
  if (isTerminal(settlement.status)) return recorded('late_evidence', collected);
  if (collected && funded) return recorded('overpaid', true);
  return settlement.status === 'needs_review'
    ? recorded('late_evidence')
    : { pending: true, exception: null, surplus: false };
}

/** The money folded so far, and the decision: none yet, funded (perhaps with too much), or failed. */
export type Funding = {
  readonly applied: readonly (Evidence & { readonly amountMinor: bigint })[];
  readonly receivedMinor: bigint;
  readonly outcome:
    | { readonly to: 'funded'; readonly overpaid: boolean; readonly evidenceId: string }
    | { readonly to: 'failed'; readonly failure: Failure; readonly evidenceId: string }
    | undefined;
};

/**
 * Folds pending collection evidence, oldest first, up to the first decision. Partial amounts add up. Evidence after the
 * decision is not folded: the new state receives it again.
 */
export function foldFunding(
  settlement: Pick<Settlement, 'amountMinor' | 'amountReceivedMinor'>,
  pending: readonly Evidence[],
): Funding {
  let receivedMinor = settlement.amountReceivedMinor;
  const applied: (Evidence & { amountMinor: bigint })[] = [];
  for (const evidence of pending) {
    if (evidence.kind === 'collection_failed') {
      const failure = evidence.failure ?? {
        code: 'collection_failed',
        message: 'The provider reported that the collection failed.',
      };
      return { applied, receivedMinor, outcome: { to: 'failed', failure, evidenceId: evidence.evidenceId } };
    }
    if (evidence.kind !== 'collection_succeeded' || evidence.amountMinor === null) continue;
    receivedMinor += evidence.amountMinor;
    applied.push({ ...evidence, amountMinor: evidence.amountMinor });
    if (receivedMinor >= settlement.amountMinor) {
      return {
        applied,
        receivedMinor,
        outcome: { to: 'funded', overpaid: receivedMinor > settlement.amountMinor, evidenceId: evidence.evidenceId },
      };
    }
  }
  return { applied, receivedMinor, outcome: undefined };
}

/** The payout rail's answer among the pending evidence; the first one counts. */
export function foldPayout(
  pending: readonly Evidence[],
): { readonly evidenceId: string; readonly paid: boolean; readonly failure: Failure | null } | undefined {
  const outcome = pending.find(
    (evidence) => evidence.kind === 'payout_confirmed' || evidence.kind === 'payout_refused',
  );
  return (
    outcome && { evidenceId: outcome.evidenceId, paid: outcome.kind === 'payout_confirmed', failure: outcome.failure }
  );
}
