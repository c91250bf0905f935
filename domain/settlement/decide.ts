/**
 * Everything that can happen to a settlement after its acceptance (contract §6), decided by one pure function. Each
 * caller does the same: it locks the settlement's row, reads the facts, calls `decide` and writes the change by one
 * statement. `test/explore/` walks every order of happenings with this function.
 */
import { settlementMessage } from '../outbox.ts';
import {
  changeOf,
  type SettlementChange,
  withEvidence,
  withMessage,
  withMove,
  withNothingPending,
  withRefund,
} from './change.ts';
import { reviewCollection } from './collection.ts';
import type { FactsOf } from './facts.ts';
import { fundingOutcome } from './funding.ts';
import type { HappeningOf, HappeningType } from './happening.ts';
import { beginPayout, recordAnswer, reviewPayout } from './payout.ts';
import { refundDueMinor } from './posting.ts';
import { type SettlementStatus, UNFUNDED_STATUSES } from './state.ts';

/** The settlement's state forbids the request. */
export type Refusal = { readonly currentState: SettlementStatus; readonly detail?: string };

export type Decision = SettlementChange | { readonly refusal: Refusal };

type Decider<Type extends HappeningType> = (
  facts: FactsOf<Type>,
  happening: HappeningOf<Type>,
  change: SettlementChange,
) => Decision;

const DECIDERS: { readonly [Type in HappeningType]: Decider<Type> } = {
  evidence: receiveEvidence,
  review,
  cancel,
  begin_payout: (facts, _happening, change) => beginPayout(facts, change),
  rail_answered: (facts, { answer }, change) => recordAnswer(facts, answer, change),
  refund,
};

/**
 * What follows for a settlement when something happens to it.
 *
 * @param now on the settlement's own clock. For what the run does it is the workflow's time, and waits are judged by
 *   it. For everything else it only dates the change.
 * @param at dates the change, where that is later: a step can begin long after the workflow scheduled it
 * @returns a change, which may be empty, or a refusal
 */
export const decide = <Type extends HappeningType>(
  facts: FactsOf<Type>,
  happening: HappeningOf<Type> & { readonly type: Type },
  now: Date,
  at: Date = now,
): Decision => DECIDERS[happening.type](facts, happening, changeOf(facts, now, at));

/** Does what is due in the present state, and in each further state that it reaches. */
function review(facts: FactsOf<'review'>, _happening: HappeningOf<'review'>, change: SettlementChange): Decision {
  return reviewPayout(facts, reviewCollection(facts, change));
}

/** The run is signalled when it has something to decide by the evidence. */
function receiveEvidence(
  { settlement }: FactsOf<'evidence'>,
  { evidence }: HappeningOf<'evidence'>,
  change: SettlementChange,
): Decision {
  const received = withEvidence(change, evidence);
  const isCounted =
    UNFUNDED_STATUSES.includes(settlement.status) &&
    received.after.amountReceivedMinor > settlement.amountReceivedMinor;
  if (received.evidence?.pending !== true && !isCounted) return received;
  return withMessage(received, settlementMessage(settlement, 'evidenceRecorded', settlement.requestId));
}

/** In awaiting_funds, evidence that was committed before decides, although the run has not acted on it yet. */
function cancel(
  { settlement, evidence }: FactsOf<'cancel'>,
  { by, signals }: HappeningOf<'cancel'>,
  change: SettlementChange,
): Decision {
  const { status } = settlement;
  if (status === 'canceled') return change;
  const isDecided = status === 'awaiting_funds' && fundingOutcome(settlement, evidence) !== undefined;
  if (!UNFUNDED_STATUSES.includes(status) || isDecided) return { refusal: { currentState: status } };
  const canceled = withNothingPending(withMove(change, { to: 'canceled', reason: `canceled_by_${by}` }), evidence);
  return signals ? withMessage(canceled, settlementMessage(settlement, 'canceled', settlement.requestId)) : canceled;
}

/** A reference names one refund, so that the same record may be sent again. */
function refund(
  { settlement, refunds }: FactsOf<'refund'>,
  { reference, amountMinor }: HappeningOf<'refund'>,
  change: SettlementChange,
): Decision {
  const refuse = (detail: string): Decision => ({ refusal: { currentState: settlement.status, detail } });
  const recorded = refunds.find((known) => known.reference === reference);
  if (recorded?.amountMinor === amountMinor) return change;
  if (recorded) return refuse('This reference is recorded with another amount.');
  if (amountMinor <= 0n || amountMinor > refundDueMinor(settlement))
    return refuse('The amount must be more than 0, and at most what is due back.');
  return withRefund(change, reference, amountMinor);
}
