/**
 * From funded to settled (contract §6). The call to the rail is made only after `paying_out` is committed. From then on
 * only the rail's evidence, or operators in review, end the settlement: unknown is not failed.
 */
import type { Resolution } from '../review.ts';
import {
  datedAfter,
  type SettlementChange,
  withAnswer,
  withDecided,
  withEvidence,
  withMove,
  withNothingPending,
} from './change.ts';
import { end, isOver, reviewCollection } from './collection.ts';
import { type NewEvidence, PAYOUT_ANSWERS, type RecordedEvidence } from './evidence.ts';
import type { StepFacts } from './facts.ts';
import { FAILURES } from './failure.ts';
import type { Failure } from './state.ts';

/**
 * Funded and on to paying_out, as far as the facts allow. A gate that is closed or a recipient that is inactive ends
 * the settlement only before paying_out.
 */
export function beginPayout(facts: StepFacts, change: SettlementChange): SettlementChange {
  const reviewed = reviewPayout(facts, reviewCollection(facts, change));
  if (reviewed.after.status !== 'funded') return reviewed;
  const { recipient } = facts;
  if (!recipient.isActive)
    return end(facts, datedAfter(reviewed, recipient.updatedAt), 'failed', FAILURES.recipientInactive);
  if (facts.isGateClosed) return end(facts, reviewed, 'failed', FAILURES.gateClosed);
  const begun = withMove(reviewed, { to: 'paying_out', reason: 'payout_sent' });
  return reviewPayout(facts, begun);
}

/**
 * Whether the rail is to be called now. It is called again after a lost call, because it deduplicates by the
 * settlement's id, but not behind a closed gate or for an inactive recipient.
 */
export const isCallAllowed = ({ recipient, isGateClosed }: StepFacts, { after }: SettlementChange): boolean =>
  after.status === 'paying_out' && recipient.isActive && !isGateClosed;

/** Acts on the rail's answer, on what operators have agreed on without one, or on the end of the wait for it. */
export function reviewPayout({ evidence, resolution }: StepFacts, change: SettlementChange): SettlementChange {
  const { status } = change.after;
  if (status !== 'paying_out' && status !== 'needs_review') return change;
  const answer = evidence.find(({ kind, pending }) => pending && isAnswer(kind));
  if (answer) return conclude(withDecided(change, answer.evidenceId), evidence, answer);
  if (status === 'needs_review')
    return resolution ? resolve(datedAfter(change, resolution.at), evidence, resolution.outcome) : change;
  if (!isOver(change)) return change;
  return withMove(change, { to: 'needs_review', reason: 'payout_outcome_unknown' });
}

/** Records what the rail answered, in every state; it is recorded once, even if the rail is called again. */
export function recordAnswer(
  facts: StepFacts,
  answer: NewEvidence | undefined,
  change: SettlementChange,
): SettlementChange {
  const isKnown = facts.evidence.some(
    ({ provider, eventId }) => provider === answer?.provider && eventId === answer.eventId,
  );
  const reviewed = reviewPayout(facts, change);
  if (answer === undefined || isKnown) return reviewed;
  const { status } = change.after;
  const isAwaited = status === 'paying_out' || status === 'needs_review';
  const isFirst = !facts.evidence.some(({ kind }) => isAnswer(kind));
  return isAwaited && isFirst
    ? conclude(withAnswer(change, answer), facts.evidence, answer)
    : withEvidence(reviewed, answer);
}

const isAnswer = (kind: RecordedEvidence['kind']): boolean => PAYOUT_ANSWERS.some((answer) => answer === kind);

function conclude(
  change: SettlementChange,
  known: readonly RecordedEvidence[],
  { kind, evidenceId, failure }: Pick<RecordedEvidence, 'kind' | 'evidenceId' | 'failure'>,
): SettlementChange {
  if (kind === 'payout_confirmed') return settle(change, known, { reason: 'payout_confirmed', evidenceId });
  const cause = failure ?? FAILURES.payoutRefused;
  return fail(change, known, { reason: cause.code, failure: cause, evidenceId });
}

const resolve = (
  change: SettlementChange,
  known: readonly RecordedEvidence[],
  outcome: Resolution['outcome'],
): SettlementChange =>
  outcome === 'paid'
    ? settle(change, known, { reason: 'resolved_paid' })
    : fail(change, known, { reason: 'resolved_refused', failure: FAILURES.payoutRefused });

type Conclusion = { readonly reason: string; readonly evidenceId?: string };

const settle = (
  change: SettlementChange,
  known: readonly RecordedEvidence[],
  conclusion: Conclusion,
): SettlementChange => withNothingPending(withMove(change, { to: 'settled', ...conclusion }), known);

const fail = (
  change: SettlementChange,
  known: readonly RecordedEvidence[],
  conclusion: Conclusion & { readonly failure: Failure },
): SettlementChange => withNothingPending(withMove(change, { to: 'failed', ...conclusion }), known);
