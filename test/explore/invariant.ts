/** What must hold after every step. Each check returns what is wrong, in words, or undefined. */
import { heldMinor, refundDueMinor } from '../../domain/settlement/posting.ts';
import { isTerminal, PAYOUT_STATUSES, type Settlement } from '../../domain/settlement/state.ts';
import { placesOf } from './bank.ts';
import type { Situation } from './situation.ts';

export type Check<Subject> = (subject: Subject) => string | undefined;

export const firstFault = <Subject>(checks: readonly Check<Subject>[], subject: Subject): string | undefined => {
  for (const check of checks) {
    const fault = check(subject);
    if (fault !== undefined) return fault;
  }
  return undefined;
};

const MINOR_PER_MAJOR = 100;
/** Minor units as people read them; an account's balance may be negative. */
export const inWords = (amountMinor: bigint): string => (Number(amountMinor) / MINOR_PER_MAJOR).toFixed(2);

const differs = (what: string, is: bigint, should: bigint): string | undefined =>
  is === should ? undefined : `${what} is ${inWords(is)}, and should be ${inWords(should)}`;

/** Each cent that arrived is in one place: held, on its way, paid out, due back, given back or taken back. */
function moneyIsInOnePlace(situation: Situation): string | undefined {
  const { settlement } = situation;
  const places = placesOf(situation);
  return (
    differs('what is due back', refundDueMinor(settlement), places.dueMinor) ??
    differs('what is held or paid out', heldMinor(settlement), places.heldMinor)
  );
}

/** The balances that follow from where the money is. Clearing has the rest, since everything sums to zero. */
function expectedBalances(situation: Situation): readonly (readonly [account: string, balance: bigint])[] {
  const { settlement } = situation;
  const { status, sourceCurrency, amountMinor, totalFeesMinor, destinationAmountMinor } = settlement;
  const { heldMinor: held, dueMinor } = placesOf(situation);
  const isPayout = PAYOUT_STATUSES.includes(status);
  const isSettled = status === 'settled';
  const isUnderWay = isPayout && !isSettled;
  const netMinor = amountMinor - totalFeesMinor;
  const of = (isPresent: boolean, balance: bigint): bigint => (isPresent ? balance : 0n);
  return [
    [`${sourceCurrency} settlement_funds`, isPayout ? of(isUnderWay, -totalFeesMinor) : -held],
    [`${sourceCurrency} payout_in_transit`, of(isUnderWay, -netMinor)],
    [`${sourceCurrency} refund_due`, -dueMinor],
    [`${sourceCurrency} input_fee_income`, of(isSettled, -settlement.inputFeeMinor)],
    [`${sourceCurrency} platform_fee_income`, of(isSettled, -settlement.platformFeeMinor)],
    [`${sourceCurrency} fx_position`, of(isSettled, -netMinor)],
    [`${settlement.destinationCurrency} fx_position`, of(isSettled, destinationAmountMinor)],
    [`${settlement.destinationCurrency} payout_paid`, of(isSettled, -destinationAmountMinor)],
  ];
}

function booksAgree(situation: Situation): string | undefined {
  for (const [account, balance] of expectedBalances(situation)) {
    const fault = differs(`the balance of ${account}`, situation.balances.get(account) ?? 0n, balance);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Unknown is not failed: what the rail has, and did not refuse, is not given back, unless operators say so. */
function railAgrees({ rail, settlement, resolution }: Situation): string | undefined {
  const { status } = settlement;
  if (resolution !== undefined) return undefined;
  if (status === 'settled' && rail.outcome !== 'paid') return 'it is settled, and the rail has not paid';
  if (!rail.hasPayout || rail.outcome === 'refused' || PAYOUT_STATUSES.includes(status)) return undefined;
  return rail.outcome === 'paid'
    ? `the rail has paid, and it is ${status}: the money is due back as well`
    : `the rail has the payout and may pay it, and it is ${status}`;
}

const nothingIsPending = ({ settlement, evidence }: Situation): string | undefined =>
  isTerminal(settlement.status) && evidence.some(({ pending }) => pending)
    ? `evidence is pending, and the settlement is ${settlement.status}`
    : undefined;

export const SITUATION_CHECKS: readonly Check<Situation>[] = [
  moneyIsInOnePlace,
  booksAgree,
  railAgrees,
  nothingIsPending,
];

/** What reads and events show of the money, by its name there. */
export const SHOWN: readonly (readonly [field: string, show: (settlement: Settlement) => string | bigint])[] = [
  ['status', ({ status }) => status],
  ['amount_received', ({ amountReceivedMinor }) => amountReceivedMinor],
  ['amount_refund_due', refundDueMinor],
  ['amount_refunded', ({ amountRefundedMinor }) => amountRefundedMinor],
];

/** The surplus of each payment, in the order in which they came. */
export function surplusOf({ bank, settlement }: Situation): readonly string[] {
  let totalMinor = 0n;
  return bank.payments.flatMap(({ evidenceId, amountMinor }) => {
    const beforeMinor = totalMinor > settlement.amountMinor ? totalMinor : settlement.amountMinor;
    totalMinor += amountMinor;
    return totalMinor > beforeMinor ? [`${evidenceId} ${inWords(totalMinor - beforeMinor)}`] : [];
  });
}
