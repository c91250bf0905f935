/**
 * The old rules put back: each of these breaks `decide` in one way, and the exploration must find it. Production code
 * has no hooks for this. A sabotage changes the facts before the decision, or the change after it.
 */

import { changeOf, type SettlementChange } from '../../domain/settlement/change.ts';
import { end, isOver } from '../../domain/settlement/collection.ts';
import { type Decision, decide as decideInProduction } from '../../domain/settlement/decide.ts';
import type { Facts } from '../../domain/settlement/facts.ts';
import { FAILURES } from '../../domain/settlement/failure.ts';
import type { Happening } from '../../domain/settlement/happening.ts';
import { isTerminal, UNFUNDED_STATUSES } from '../../domain/settlement/state.ts';
import { type Decide, decide } from './shell.ts';
import type { Situation } from './situation.ts';
import { everything, type Universe, WHOLE } from './universe.ts';

export type Sabotage = {
  /** What the broken decider does. */
  readonly what: string;
  readonly universe: Universe;
  readonly decide: Decide;
};

const universeOf = (name: string): Universe => {
  const universe = WHOLE.find((each) => each.name === name);
  if (!universe) throw new Error(`there is no universe ${name}`);
  return universe;
};

type Asked = { readonly facts: Facts; readonly happening: Happening; readonly situation: Situation };

/** Decides by other facts. */
const given =
  (alter: (asked: Asked) => Partial<Facts>): Decide =>
  (facts, happening, now, situation) =>
    decide({ ...facts, ...alter({ facts, happening, situation }) }, happening, now, situation);

/** Decides something else than what is right, unless that is a refusal. */
const afterwards =
  (alter: (change: SettlementChange, asked: Asked) => Decision): Decide =>
  (facts, happening, now, situation) => {
    const decision = decide(facts, happening, now, situation);
    return 'refusal' in decision ? decision : alter(decision, { facts, happening, situation });
  };

type Exception = SettlementChange['exceptions'][number];

/** The change with other exceptions. */
const excepted = (change: SettlementChange, alter: (exception: Exception) => Exception): SettlementChange => ({
  ...change,
  exceptions: change.exceptions.map(alter),
});

const isUnderWay = ({ settlement: { status } }: Facts): boolean => status === 'paying_out' || status === 'needs_review';

const isReversal = (kind: string): boolean => kind === 'collection_returned' || kind === 'dispute_opened';

/** The settlement as if this much more had been received, which its events show too. */
function withReceived(change: SettlementChange, moreMinor: bigint): SettlementChange {
  const after = { ...change.after, amountReceivedMinor: change.after.amountReceivedMinor + moreMinor };
  const events = change.events.map((event) => ({ ...event, settlement: after }));
  return { ...change, after, events };
}

export const SABOTAGES = {
  payout_under_way_is_failed: {
    what: 'A closed gate or an inactive recipient fails a payout that is under way.',
    universe: universeOf('payout'),
    decide: (facts, happening, now, situation) =>
      happening.type === 'begin_payout' &&
      facts.settlement.status === 'paying_out' &&
      (facts.isGateClosed || !facts.recipient.isActive)
        ? end(facts, changeOf(facts, now), 'failed', FAILURES.gateClosed)
        : decide(facts, happening, now, situation),
  },
  late_answer_is_dropped: {
    what: "The rail's answer is dropped once the settlement has ended.",
    universe: universeOf('payout'),
    decide: (facts, happening, now, situation) =>
      happening.type === 'rail_answered' && isTerminal(facts.settlement.status)
        ? changeOf(facts, now)
        : decide(facts, happening, now, situation),
  },
  return_before_funding_is_ignored: {
    what: 'Money that is taken back before the settlement is funded still funds it.',
    universe: universeOf('money'),
    decide: afterwards(({ evidence, ...change }, { facts, happening }) => {
      const isEarly = UNFUNDED_STATUSES.includes(facts.settlement.status);
      if (happening.type !== 'evidence' || !isReversal(happening.evidence.kind) || !isEarly)
        return { ...change, evidence };
      const kept = { ...change, evidence: evidence && { ...evidence, pending: false } };
      return { ...withReceived(kept, evidence?.reversedMinor ?? 0n), postings: [], messages: [] };
    }),
  },
  returned_money_is_due_back: {
    what: 'The end shows as due back what the payer has taken back.',
    universe: universeOf('money'),
    decide: afterwards((change, { situation }) => {
      const isEnd = isTerminal(change.after.status) && !isTerminal(change.before.status);
      const takenMinor = situation.evidence.reduce((sum, { reversedMinor }) => sum + reversedMinor, 0n);
      return isEnd ? withReceived(change, takenMinor) : change;
    }),
  },
  payout_wait_never_ends: {
    what: 'The attempts of the payout are judged by the time of the first one, so their wait is never over.',
    universe: everything(2),
    decide: given(({ facts, happening }) =>
      (happening.type === 'begin_payout' || happening.type === 'rail_answered') && isUnderWay(facts)
        ? { settlement: { ...facts.settlement, expiresAt: null } }
        : {},
    ),
  },
  evidence_judges_the_wait: {
    what: 'The API process that receives evidence ends the wait by its own clock.',
    universe: universeOf('clocks'),
    decide: afterwards((change, { facts, happening }) =>
      happening.type === 'evidence' && facts.settlement.status === 'awaiting_funds' && isOver(change)
        ? end(facts, change, 'expired', FAILURES.fundingTimeout)
        : change,
    ),
  },
  step_is_dated_by_its_first_try: {
    what: "The record of the rail's answer is dated by the time at which the payout began.",
    universe: universeOf('payout'),
    decide: (facts, happening, now, situation) =>
      happening.type === 'rail_answered'
        ? decideInProduction(facts, happening, facts.settlement.updatedAt)
        : decide(facts, happening, now, situation),
  },
  other_name_rejects: {
    what: 'A rejection about another name rejects.',
    universe: universeOf('compliance'),
    decide: given(({ situation: { identity } }) => {
      const { other } = identity.decisions;
      return other?.to === 'rejected' ? { verification: other } : {};
    }),
  },
  amount_of_zero_is_received: {
    what: 'An event of amount 0 sends settlement.funds_received.',
    universe: universeOf('event'),
    decide: afterwards((change, { happening }) => {
      if (happening.type !== 'evidence' || happening.evidence.amountMinor !== 0n) return change;
      const after = { ...change.after, eventSequence: change.after.eventSequence + 1 };
      const { at } = change;
      const type = 'settlement.funds_received';
      const event = { type, sequence: after.eventSequence, at, settlement: after, exceptions: [] } as const;
      return { ...change, after, events: [...change.events, event] };
    }),
  },
  overpaid_names_the_payment: {
    what: 'The exception `overpaid` names the whole payment in place of the surplus.',
    universe: universeOf('money'),
    decide: afterwards((change) =>
      excepted(change, (exception) =>
        exception.type === 'overpaid' ? { ...exception, amountMinor: change.before.amountReceivedMinor } : exception,
      ),
    ),
  },
  payment_after_return_is_due: {
    what: 'What was taken back of a payout is forgotten, so that a payment after it is due back.',
    universe: universeOf('money'),
    decide: afterwards((change, { happening }) =>
      happening.type === 'evidence' ? { ...change, after: { ...change.after, takenBackMinor: 0n } } : change,
    ),
  },
  return_names_what_was_due: {
    what: 'A return after a refund names only what was not given back.',
    universe: universeOf('refund'),
    decide: afterwards((change) =>
      excepted(change, (exception) =>
        exception.type === 'returned'
          ? { ...exception, amountMinor: change.evidence?.reversedMinor ?? null }
          : exception,
      ),
    ),
  },
  return_after_the_end_is_late_money: {
    what: 'A return after the end, of a payment that never came, is late evidence with an amount.',
    universe: universeOf('event'),
    decide: afterwards((change) =>
      excepted(change, (exception) =>
        exception.type === 'returned' && exception.reason !== null
          ? { ...exception, type: 'late_evidence' }
          : exception,
      ),
    ),
  },
  deactivation_is_read_too_early: {
    what: 'The recipient is read before the lock, so that a deactivation in between does not stop the payout.',
    universe: universeOf('payout'),
    decide: given(({ facts: { recipient }, happening }) =>
      happening.type === 'begin_payout' ? { recipient: { ...recipient, isActive: true } } : {},
    ),
  },
  cancel_overrules_the_money: {
    what: 'A cancel counts, although the collection was reported as failed or taken back.',
    universe: universeOf('money'),
    decide: given(({ happening }) => (happening.type === 'cancel' ? { evidence: [] } : {})),
  },
  operators_overrule_the_rail: {
    what: "Operators' agreement counts, although the rail's answer is recorded.",
    universe: universeOf('payout'),
    decide: (facts, happening, now, situation) => {
      const decided = facts.evidence.filter(({ pending }) => pending).map(({ evidenceId }) => evidenceId);
      if (!facts.resolution || decided.length === 0) return decide(facts, happening, now, situation);
      const decision = decide({ ...facts, evidence: [] }, happening, now, situation);
      return 'refusal' in decision ? decision : { ...decision, decided };
    },
  },
  unknown_is_failed: {
    what: 'A payout without an outcome fails when its wait is over.',
    universe: universeOf('payout'),
    decide: (facts, happening, now, situation) => {
      const decision = decide(facts, happening, now, situation);
      const isUnknown =
        !('refusal' in decision) &&
        decision.after.status === 'needs_review' &&
        facts.settlement.status !== 'needs_review';
      return isUnknown ? end(facts, changeOf(facts, now), 'failed', FAILURES.payoutRefused) : decision;
    },
  },
  refund_is_recorded_twice: {
    what: 'A refund that is recorded again with the same reference counts again.',
    universe: universeOf('refund'),
    decide: given(() => ({ refunds: [] })),
  },
  run_is_not_told: {
    what: 'Evidence does not signal the run.',
    universe: universeOf('money'),
    decide: afterwards((change, { happening }) =>
      happening.type === 'evidence' ? { ...change, messages: [] } : change,
    ),
  },
} as const satisfies Record<string, Sabotage>;

export type SabotageName = keyof typeof SABOTAGES;
