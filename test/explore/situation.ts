/**
 * A node of the exploration: what PostgreSQL holds about one settlement, what its run is doing, and what really
 * happened outside. `decide` sees only the first; the invariants compare all three.
 */
import type { Recipient } from '../../domain/recipient.ts';
import type { AgreedResolution } from '../../domain/review.ts';
import type { RecordedEvidence, SettlementException } from '../../domain/settlement/evidence.ts';
import type { NameDecision } from '../../domain/settlement/facts.ts';
import { isTerminal, type Settlement, UNFUNDED_STATUSES } from '../../domain/settlement/state.ts';

export type RailOutcome = 'paid' | 'refused';
export type Answer = 'payout_confirmed' | 'payout_refused';

/** A payment by the payer. `isTaken`: the payer's bank took it back, or a part of it. */
export type Payment = {
  readonly evidenceId: string;
  readonly amountMinor: bigint;
  readonly isTaken: boolean;
};

/** What the payer's bank did, and the operators' transfers to the payer; minor units of the source currency. */
export type Bank = {
  readonly payments: readonly Payment[];
  /** What arrived, less what was taken back and what was given back. Negative: the payer has more than was paid. */
  readonly balanceMinor: bigint;
  readonly isTakenBeforePayout: boolean;
  readonly isFailureReported: boolean;
};

/** What the rail did. It pays a settlement at most once, because it deduplicates by the settlement's id. */
export type Rail = { readonly hasPayout: boolean; readonly outcome: RailOutcome | undefined };

/** An attempt of the payout's activity, between its two transactions. Slow attempts overlap. */
export type Attempt =
  | { readonly step: 'before_call' }
  | { readonly step: 'after_call'; readonly answer: Answer | undefined };

/** A verification about a name. */
export type Check = 'open' | 'verified' | 'rejected';

export const NAMES = ['payee', 'other'] as const;
export type Name = (typeof NAMES)[number];

export type Identity = {
  readonly recipient: Recipient;
  readonly checks: Readonly<Record<Name, Check>>;
  /** When the open ones were opened, by the clock of the process that did it: none is decided before. */
  readonly openedAt: Readonly<Partial<Record<Name, Date>>>;
  /** The latest decision about the payee's name, and about the other one. */
  readonly decisions: Readonly<Partial<Record<Name, NameDecision>>>;
  readonly checksLeft: number;
};

export type Situation = {
  readonly settlement: Settlement;
  readonly exceptions: readonly SettlementException[];
  /** Oldest first. */
  readonly evidence: readonly RecordedEvidence[];
  readonly refunds: readonly { readonly reference: string; readonly amountMinor: bigint }[];
  /** The journal's balances by `<currency> <account>`, and its steps. */
  readonly balances: ReadonlyMap<string, bigint>;
  readonly steps: readonly string[];
  /** The latest date of anything that was written; epoch milliseconds. */
  readonly latestAt: number;
  readonly identity: Identity;
  readonly isGateClosed: boolean;
  /** `paying`: the payout's activity is under way, and is retried until it returns. */
  readonly run: 'gone' | 'waiting' | 'paying';
  readonly attempts: readonly Attempt[];
  readonly bank: Bank;
  readonly rail: Rail;
  /** What operators have agreed on in review. They may be wrong. */
  readonly resolution: AgreedResolution | undefined;
  /** The workflow's time, by which waits are judged; epoch milliseconds. */
  readonly now: number;
};

/**
 * Equal for situations in which the same can follow. Dates are relative to now, ids become positions, and what can
 * decide nothing more is left out.
 *
 * @param clockMin how far the slowest clock is behind, as a number of at most 0: older dates are alike
 */
export function keyOf(situation: Situation, clockMin: number): string {
  const { settlement, now, bank, rail, run, attempts, resolution, isGateClosed } = situation;
  const { status } = settlement;
  const isEnded = isTerminal(status);
  const since = (at: number): number => Math.max(at - now, clockMin);
  return [
    status,
    settlement.expiresAt === null || isEnded ? '' : Math.max(settlement.expiresAt.getTime() - now, 0),
    since(settlement.updatedAt.getTime()),
    since(situation.latestAt),
    settlement.amountReceivedMinor,
    settlement.amountRefundedMinor,
    settlement.takenBackMinor,
    evidenceKey(situation),
    situation.refunds.length,
    isEnded ? '' : `${identityKey(situation, since)}${isGateClosed}`,
    run,
    attempts.map(attemptKey).sort().join(),
    paymentKey(situation),
    bank.balanceMinor,
    bank.isTakenBeforePayout,
    bank.isFailureReported,
    rail.hasPayout,
    rail.outcome,
    resolution && `${resolution.outcome} ${isEnded ? '' : since(resolution.at.getTime())}`,
  ].join('|');
}

const attemptKey = (attempt: Attempt): string => (attempt.step === 'before_call' ? 'call' : `said ${attempt.answer}`);

/** Of what is decided, only the rail's answers are looked at again. */
const evidenceKey = ({ evidence }: Situation): string =>
  evidence
    .map(({ kind, eventId, pending, reversedMinor }) => {
      if (kind === 'payout_confirmed' || kind === 'payout_refused') return `${eventId} ${pending}`;
      return pending ? `${kind} ${reversedMinor > 0n}` : '';
    })
    .filter((text) => text !== '')
    .join();

/** The order of payments decides only which one is named as the surplus. */
function paymentKey({ bank, settlement }: Situation): string {
  const texts = bank.payments.map(({ amountMinor, isTaken }) => `${amountMinor}${isTaken}`);
  return (UNFUNDED_STATUSES.includes(settlement.status) ? texts : texts.sort()).join();
}

function identityKey({ identity }: Situation, since: (at: number) => number): string {
  const { recipient, checks, openedAt, decisions, checksLeft } = identity;
  const [payee, other] = NAMES.map((name) => {
    const decision = decisions[name];
    const opened = openedAt[name] ? `open${since(openedAt[name].getTime())}` : '';
    return decision ? `${opened}${decision.to}${since(decision.at.getTime())}` : opened;
  });
  return `${recipient.name}${recipient.isActive}${recipient.verificationStatus}${since(recipient.updatedAt.getTime())}${checks.payee}${checks.other}${payee}${other}${checksLeft}`;
}
