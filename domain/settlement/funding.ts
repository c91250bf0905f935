/** What the recorded evidence decides about a settlement's funding (contract §6). */
import { type Evidence, isCovered, type RecordedEvidence } from './evidence.ts';
import { FAILURES } from './failure.ts';
import type { Failure, Settlement } from './state.ts';

export type FundingOutcome =
  | { readonly to: 'funded' }
  | { readonly to: 'failed'; readonly failure: Failure; readonly evidenceId: string };

/**
 * What the evidence decides before the payout; undefined while it decides nothing. What is pending here failed before
 * the amount was covered, or took money back. So it decides first.
 */
export function fundingOutcome(
  settlement: Pick<Settlement, 'amountMinor' | 'amountReceivedMinor'>,
  known: readonly RecordedEvidence[],
): FundingOutcome | undefined {
  for (const evidence of known) {
    const failure = evidence.pending ? failureOf(evidence) : undefined;
    if (failure) return { to: 'failed', failure, evidenceId: evidence.evidenceId };
  }
  return isCovered(settlement) ? { to: 'funded' } : undefined;
}

/** Undefined for evidence of the payout. */
function failureOf({ kind, failure, reversedMinor }: Evidence & Pick<RecordedEvidence, 'reversedMinor'>) {
  switch (kind) {
    case 'collection_failed':
      return failure ?? FAILURES.collectionFailed;
    case 'collection_returned':
      return reversedMinor > 0n ? FAILURES.paymentReturned : (failure ?? FAILURES.paymentReturned);
    case 'dispute_opened':
      return FAILURES.paymentDisputed;
    default:
      return undefined;
  }
}
