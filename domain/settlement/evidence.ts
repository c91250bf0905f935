/**
 * What providers say about a settlement's money, and what a new piece of it does at once (contract §6). A provider's
 * event becomes at most one piece of evidence. Money is booked in the transaction that records it, in every state.
 */

import { smaller } from '../money.ts';
import { COLLECTORS, type Collector } from '../payment-method.ts';
import { heldMinor, refundDueMinor } from './posting.ts';
import { type Failure, isTerminal, PAYOUT_STATUSES, type Settlement, UNFUNDED_STATUSES } from './state.ts';

export const EVIDENCE_KINDS = [
  'collection_succeeded',
  'collection_failed',
  'collection_returned',
  'dispute_opened',
  'dispute_closed',
  'payout_confirmed',
  'payout_refused',
] as const;
export type EvidenceKind = (typeof EVIDENCE_KINDS)[number];

/** The kinds that are the payout rail's answer. */
export const PAYOUT_ANSWERS = ['payout_confirmed', 'payout_refused'] as const satisfies readonly EvidenceKind[];

/** All providers that send signed events. */
export const EVENT_PROVIDERS = [...COLLECTORS, 'idverify'] as const;
export type EventProvider = (typeof EVENT_PROVIDERS)[number];

export type EvidenceProvider = Collector | 'payout_rail' | 'internal';

export const EXCEPTION_TYPES = ['overpaid', 'currency_mismatch', 'late_evidence', 'disputed', 'returned'] as const;
export type ExceptionType = (typeof EXCEPTION_TYPES)[number];

/** How many exceptions a settlement and its events show: the latest. Each exception has an event of its own. */
export const EXCEPTIONS_SHOWN_MAX = 100;

/** `amountMinor` and `currency` are set only if money moved, `failure` only if the provider refused. */
export type Evidence = {
  readonly evidenceId: string;
  readonly kind: EvidenceKind;
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  readonly failure: Failure | null;
};

/** Evidence that is recorded. */
export type RecordedEvidence = Evidence & {
  readonly provider: EvidenceProvider;
  /** The provider's id of the event. */
  readonly eventId: string;
  /** The run must still decide by it. */
  readonly pending: boolean;
  /** What it took back of the money that was counted; minor units of the source currency. */
  readonly reversedMinor: bigint;
};

/** Evidence that is not recorded yet. */
export type NewEvidence = Omit<RecordedEvidence, 'pending' | 'reversedMinor'> & {
  /** Of the provider's bytes, in lower-case hex. */
  readonly sha256: string;
};

/** A line of the evidence list in a certificate. */
export type EvidenceFact = { readonly evidenceId: string; readonly kind: EvidenceKind; readonly sha256: string };

/** `reason` is the provider's code, where it gave one. */
export type SettlementException = {
  readonly type: ExceptionType;
  readonly at: Date;
  readonly evidenceId: string | null;
  /** The surplus, or else the amount that the evidence names; what was taken back, where it names none. */
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  readonly reason: string | null;
};

/** What a new piece of evidence does to a settlement in its present state. Amounts in minor units. */
export type Reception = {
  /** The run must still decide by it. */
  readonly pending: boolean;
  readonly exception: ExceptionType | null;
  /** The amount that the exception names; null where nobody knows it. */
  readonly exceptionMinor: bigint | null;
  /** Money that came in: held for the settlement, or due back at once. */
  readonly heldMinor: bigint;
  readonly dueBackMinor: bigint;
  /** Money that the payer's bank took back, and that is deducted from what was received. */
  readonly reversedMinor: bigint;
  /**
   * The same, of money that is not here any more: on its way, paid out or given back. Negative where a payment fills
   * it.
   */
  readonly takenBackMinor: bigint;
};

const NOTHING: Reception = {
  pending: false,
  exception: null,
  exceptionMinor: null,
  heldMinor: 0n,
  dueBackMinor: 0n,
  reversedMinor: 0n,
  takenBackMinor: 0n,
};
const PENDING: Reception = { ...NOTHING, pending: true };

const excepted = (exception: ExceptionType, evidence: Evidence, rest: Partial<Reception> = {}): Reception => ({
  ...NOTHING,
  exception,
  exceptionMinor: evidence.amountMinor,
  ...rest,
});

/** Decides what new evidence does, under the settlement's row lock. */
export function receive(settlement: Settlement, evidence: Evidence): Reception {
  const isLate = isTerminal(settlement.status);
  switch (evidence.kind) {
    case 'collection_succeeded':
      return receiveCollection(settlement, evidence);
    case 'collection_failed':
      return isLate ? excepted('late_evidence', evidence) : decidesWhileUncovered(settlement);
    case 'collection_returned':
      return isUncounted(settlement, evidence) ? PENDING : receiveReversal(settlement, evidence, 'returned');
    case 'dispute_opened':
      return receiveReversal(settlement, evidence, 'disputed');
    case 'dispute_closed':
      return NOTHING;
    case 'payout_confirmed':
    case 'payout_refused':
      return isLate ? excepted('late_evidence', evidence) : PENDING;
  }
}

/** Money in another currency was not applied. */
const isForeign = ({ sourceCurrency }: Settlement, { currency }: Evidence): boolean =>
  currency !== null && currency !== sourceCurrency;

/** A return of a payment that never came is a failure of the collection, while that can decide. */
const isUncounted = (settlement: Settlement, evidence: Evidence): boolean =>
  UNFUNDED_STATUSES.includes(settlement.status) &&
  settlement.amountReceivedMinor === 0n &&
  !isForeign(settlement, evidence);

/** A failed collection decides only while the amount is not covered by another one. */
const decidesWhileUncovered = (settlement: Settlement): Reception =>
  UNFUNDED_STATUSES.includes(settlement.status) && !isCovered(settlement) ? PENDING : NOTHING;

/**
 * A payment first makes up for what the payer's bank took back, also of what was paid out or given back, and is held in
 * `funded` for what is missing there. Only the rest is due back.
 */
function receiveCollection(settlement: Settlement, evidence: Evidence): Reception {
  const { status, sourceCurrency, takenBackMinor } = settlement;
  const { amountMinor, currency } = evidence;
  if (currency !== sourceCurrency) return excepted('currency_mismatch', evidence);
  if (amountMinor === null || amountMinor <= 0n) return NOTHING;
  if (UNFUNDED_STATUSES.includes(status)) return { ...NOTHING, heldMinor: amountMinor };
  const filledMinor = smaller(amountMinor, takenBackMinor);
  const missingMinor = status === 'funded' ? settlement.amountMinor - heldMinor(settlement) : 0n;
  const addedMinor = smaller(amountMinor - filledMinor, missingMinor);
  const surplusMinor = amountMinor - addedMinor;
  if (surplusMinor === 0n) return { ...NOTHING, heldMinor: addedMinor };
  return excepted(isTerminal(status) ? 'late_evidence' : 'overpaid', evidence, {
    exceptionMinor: surplusMinor,
    heldMinor: addedMinor,
    dueBackMinor: surplusMinor - filledMinor,
    takenBackMinor: -filledMinor,
  });
}

/**
 * A return or a dispute takes counted money back, and never more than that. Before the payout it ends the settlement.
 * What is here is deducted; what is on its way, paid out or given back is noted, so that a later payment makes up for
 * it.
 */
function receiveReversal(settlement: Settlement, evidence: Evidence, exception: 'returned' | 'disputed'): Reception {
  const { status, amountReceivedMinor, amountRefundedMinor, takenBackMinor } = settlement;
  if (isForeign(settlement, evidence)) return excepted(exception, evidence);
  const isPayingOut = PAYOUT_STATUSES.includes(status);
  const countedMinor = amountReceivedMinor - takenBackMinor;
  // A provider that names no amount means all that was counted.
  const claimedMinor = evidence.amountMinor || countedMinor;
  const takenMinor = smaller(claimedMinor, countedMinor);
  const hereMinor = isPayingOut ? refundDueMinor(settlement) : amountReceivedMinor - amountRefundedMinor;
  const reversedMinor = smaller(takenMinor, hereMinor);
  return excepted(exception, evidence, {
    exceptionMinor: claimedMinor || evidence.amountMinor,
    pending: !isPayingOut && !isTerminal(status) && reversedMinor > 0n,
    reversedMinor,
    takenBackMinor: takenMinor - reversedMinor,
  });
}

/** Whether what was received covers the amount. */
export const isCovered = (settlement: Pick<Settlement, 'amountMinor' | 'amountReceivedMinor'>): boolean =>
  settlement.amountReceivedMinor >= settlement.amountMinor;

/** A collection with what it added to the settlement, oldest first. Those in another currency add nothing. */
type Counted = { readonly collection: Evidence; readonly totalMinor: bigint; readonly amountMinor: bigint };

function countCollections({ sourceCurrency }: Pick<Settlement, 'sourceCurrency'>, known: readonly Evidence[]) {
  const counted: Counted[] = [];
  for (const collection of known) {
    const { kind, currency, amountMinor } = collection;
    if (kind !== 'collection_succeeded' || currency !== sourceCurrency || amountMinor === null) continue;
    counted.push({ collection, amountMinor, totalMinor: (counted.at(-1)?.totalMinor ?? 0n) + amountMinor });
  }
  return counted;
}

/** The evidence with which the settlement's amount was covered; undefined while it is not. */
export const coveringEvidence = (
  settlement: Pick<Settlement, 'amountMinor' | 'sourceCurrency'>,
  known: readonly Evidence[],
): Evidence | undefined =>
  countCollections(settlement, known).find(({ totalMinor }) => totalMinor >= settlement.amountMinor)?.collection;

/** Each piece of evidence that exceeded the settlement's amount, with its surplus. */
export const surplusOf = (
  settlement: Pick<Settlement, 'amountMinor' | 'sourceCurrency'>,
  known: readonly Evidence[],
): readonly { readonly collection: Evidence; readonly surplusMinor: bigint }[] =>
  countCollections(settlement, known).flatMap(({ collection, totalMinor, amountMinor }) => {
    const surplusMinor = smaller(totalMinor - settlement.amountMinor, amountMinor);
    return surplusMinor > 0n ? [{ collection, surplusMinor }] : [];
  });
