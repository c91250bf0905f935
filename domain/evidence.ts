/**
 * What providers say about a settlement's money, and what it means (contract §6). A provider's event becomes at most
 * one piece of evidence. Money is booked in the transaction that records it, whatever the settlement's state.
 */
import { COLLECTORS, type Collector } from './payment-method.ts';
import { type Failure, isTerminal, type Settlement, type SettlementStatus } from './settlement.ts';

export const EVIDENCE_KINDS = [
  'collection_succeeded',
  'collection_failed',
  'dispute_opened',
  'dispute_closed',
  'payout_confirmed',
  'payout_refused',
] as const;
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number];

/** All providers that send signed events. */
export const EVENT_PROVIDERS = [...COLLECTORS, 'idverify'] as const;
export type EventProvider = (typeof EVENT_PROVIDERS)[number];

export type EvidenceProvider = Collector | 'payout_rail' | 'internal';

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

/** Amount and currency as the evidence says them; `reason` is the provider's code, where it gave one. */
export type SettlementException = {
  readonly type: ExceptionType;
  readonly at: Date;
  readonly evidenceId: string | null;
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  readonly reason: string | null;
};

/** What a new piece of evidence does to a settlement in its present state. */
export type Reception = {
  /** The workflow must still decide by it. */
  readonly pending: boolean;
  readonly exception: ExceptionType | null;
  /** Where its money is booked: held for the settlement, or due back at once. Null where no money came in. */
  readonly booked: 'held' | 'due_back' | null;
};

const PENDING: Reception = { pending: true, exception: null, booked: null };

const recorded = (exception: ExceptionType | null, booked: Reception['booked'] = null): Reception => ({
  pending: false,
  exception,
  booked,
});

/** States in which money is collected, or is held until collection begins. */
const UNFUNDED_STATUSES: readonly SettlementStatus[] = ['accepted', 'compliance_hold', 'awaiting_funds'];

/**
 * Decides what evidence does, under the settlement's row lock. A bank may take its money back in every state. In review
 * the rail's answer comes too late: an operator decides.
 */
export function receive(
  settlement: Pick<Settlement, 'status' | 'sourceCurrency' | 'amountMinor' | 'amountReceivedMinor'>,
  evidence: Evidence,
): Reception {
  const { status } = settlement;
  switch (evidence.kind) {
    case 'collection_succeeded':
      if (evidence.currency !== settlement.sourceCurrency) return recorded('currency_mismatch');
      if (UNFUNDED_STATUSES.includes(status)) return recorded(null, 'held');
      return recorded(isTerminal(status) ? 'late_evidence' : 'overpaid', 'due_back');
    case 'collection_failed':
      if (isCovered(settlement)) return recorded('returned');
      return isTerminal(status) ? recorded('late_evidence') : PENDING;
    case 'dispute_opened':
      return recorded('disputed');
    case 'dispute_closed':
      return recorded(null);
    case 'payout_confirmed':
    case 'payout_refused':
      return isTerminal(status) || status === 'needs_review' ? recorded('late_evidence') : PENDING;
  }
}

/** Whether what was received covers the amount. */
export const isCovered = (settlement: Pick<Settlement, 'amountMinor' | 'amountReceivedMinor'>): boolean =>
  settlement.amountReceivedMinor >= settlement.amountMinor;

/**
 * The evidence with which the settlement's amount was covered; undefined while it is not.
 *
 * @param collections all that succeeded, oldest first; those in another currency do not count
 */
export function coveringEvidence(
  { amountMinor, sourceCurrency }: Pick<Settlement, 'amountMinor' | 'sourceCurrency'>,
  collections: readonly Evidence[],
): Evidence | undefined {
  let totalMinor = 0n;
  return collections.find((collection) => {
    if (collection.currency === sourceCurrency) totalMinor += collection.amountMinor ?? 0n;
    return totalMinor >= amountMinor;
  });
}

/** What the provider's failure is called where it gave no reason. */
const COLLECTION_FAILED: Failure = {
  code: 'collection_failed',
  message: 'The provider reported that the collection failed.',
};

/** What follows for a settlement in awaiting_funds. */
export type FundingOutcome =
  | { readonly to: 'funded' }
  | { readonly to: 'failed'; readonly failure: Failure; readonly evidenceId: string };

/**
 * What the committed evidence decides in awaiting_funds; undefined while it decides nothing. A failure is pending only
 * if it came before the amount was covered, so it decides first.
 */
export function fundingOutcome(
  settlement: Pick<Settlement, 'amountMinor' | 'amountReceivedMinor'>,
  pending: readonly Evidence[],
): FundingOutcome | undefined {
  const failed = pending.find(({ kind }) => kind === 'collection_failed');
  if (failed) return { to: 'failed', failure: failed.failure ?? COLLECTION_FAILED, evidenceId: failed.evidenceId };
  return isCovered(settlement) ? { to: 'funded' } : undefined;
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
