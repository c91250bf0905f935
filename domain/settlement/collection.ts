/** From accepted to funded: compliance, then the money (contract §6). */
import { sandboxCollectionMessage } from '../outbox.ts';
import {
  datedAfter,
  type Move,
  type SettlementChange,
  withDecided,
  withEvidence,
  withMessage,
  withMove,
  withNothingPending,
  withSurplus,
} from './change.ts';
import { coveringEvidence, type RecordedEvidence, surplusOf } from './evidence.ts';
import type { StepFacts } from './facts.ts';
import { FAILURES } from './failure.ts';
import { fundingOutcome } from './funding.ts';
import { type Failure, VERIFICATION_THRESHOLD_MINOR } from './state.ts';

/** Moves through as many states as the facts allow. From paying_out on there is nothing to collect. */
export function reviewCollection(facts: StepFacts, change: SettlementChange): SettlementChange {
  const admitted = change.after.status === 'accepted' ? admit(facts, change) : change;
  const cleared = admitted.after.status === 'compliance_hold' ? reviewCompliance(facts, admitted) : admitted;
  return cleared.after.status === 'awaiting_funds' || cleared.after.status === 'funded'
    ? reviewFunding(facts, cleared)
    : cleared;
}

function admit(facts: StepFacts, change: SettlementChange): SettlementChange {
  const { settlement, recipient, verification } = facts;
  if (!recipient.isActive) return rejectInactive(facts, change);
  if (facts.isScreeningHit) return end(facts, change, 'rejected', FAILURES.screeningHit);
  if (facts.isGateClosed) return rejectAtGate(facts, change);
  if (settlement.amountMinor < VERIFICATION_THRESHOLD_MINOR) return beginCollection(facts, change);
  return verification?.to === 'verified'
    ? beginCollection(facts, datedAfter(change, verification.at))
    : withMove(change, { to: 'compliance_hold', reason: 'verification_required' });
}

function reviewCompliance(facts: StepFacts, change: SettlementChange): SettlementChange {
  const { recipient, verification } = facts;
  if (verification) {
    const dated = datedAfter(change, verification.at);
    if (verification.to === 'rejected') return end(facts, dated, 'rejected', FAILURES.verificationRejected);
    if (!recipient.isActive) return rejectInactive(facts, dated);
    return facts.isGateClosed ? rejectAtGate(facts, dated) : beginCollection(facts, dated);
  }
  return isOver(change) ? end(facts, change, 'expired', FAILURES.verificationTimeout) : change;
}

const rejectInactive = (facts: StepFacts, change: SettlementChange): SettlementChange =>
  end(facts, datedAfter(change, facts.recipient.updatedAt), 'rejected', FAILURES.recipientInactive);

const rejectAtGate = (facts: StepFacts, change: SettlementChange): SettlementChange =>
  end(facts, change, 'rejected', FAILURES.gateClosed);

function beginCollection(facts: StepFacts, change: SettlementChange): SettlementChange {
  const waiting = withMove(change, { to: 'awaiting_funds', reason: 'compliance_passed' });
  const collecting = facts.isSimulated ? withMessage(waiting, sandboxCollectionMessage(waiting.after)) : waiting;
  return facts.internalFunding ? withEvidence(collecting, facts.internalFunding) : collecting;
}

/** A return or a dispute ends a settlement that is funded, too. */
function reviewFunding(facts: StepFacts, change: SettlementChange): SettlementChange {
  const outcome = fundingOutcome(change.after, facts.evidence);
  if (outcome?.to === 'failed') return end(facts, change, 'failed', outcome.failure, outcome.evidenceId);
  if (change.after.status === 'funded') return change;
  if (!outcome) return isOver(change) ? end(facts, change, 'expired', FAILURES.fundingTimeout) : change;
  const known = [...facts.evidence, ...(change.evidence ? [change.evidence] : [])];
  const evidenceId = coveringEvidence(change.after, known)?.evidenceId;
  const funded = withMove(change, { to: 'funded', reason: 'evidence_covers_amount', evidenceId });
  return surplusOf(change.after, known).reduce(
    (latest, { collection, surplusMinor }) => withSurplus(latest, collection, surplusMinor),
    funded,
  );
}

/** Whether the present wait is over, by the settlement's own clock. */
export const isOver = ({ after, now }: SettlementChange): boolean => after.expiresAt !== null && after.expiresAt <= now;

/**
 * Ends a settlement without a payout. Everything that was received and is still held becomes due back.
 *
 * @param evidenceId of the pending evidence that decides it
 */
export const end = (
  { evidence }: { readonly evidence: readonly RecordedEvidence[] },
  change: SettlementChange,
  to: Move['to'],
  failure: Failure,
  evidenceId?: string,
): SettlementChange => {
  const moved = withMove(change, { to, reason: failure.code, failure, evidenceId });
  return withNothingPending(evidenceId === undefined ? moved : withDecided(moved, evidenceId), evidence);
};
