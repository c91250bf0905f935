/** One possible state of a settlement and of what decides about it, as the model sees it. Amounts in minor units. */
import type { Scenario } from './scenario.ts';

export type Status =
  | 'accepted'
  | 'compliance_hold'
  | 'awaiting_funds'
  | 'funded'
  | 'paying_out'
  | 'needs_review'
  | 'settled'
  | 'rejected'
  | 'expired'
  | 'failed'
  | 'canceled';

/** What the payout rail says. */
export type RailAnswer = 'confirmed' | 'refused';

/** Evidence that the service must still decide by. */
export type Pending = {
  /** With it the settlement fails. */
  readonly failure: string;
  /** What it becomes if the settlement ends without it; null where its exception is there: it took back money. */
  readonly late: 'late_evidence' | 'returned' | null;
  /** Null where the evidence names none. */
  readonly amountMinor: number | null;
};

export type World = {
  readonly status: Status;
  /** The code of the failure with which it ended; null for other ends. */
  readonly failure: string | null;
  /** What came in and was not taken back, in the settlement's own currency, wherever it is now. */
  readonly arrivedMinor: number;
  /** What an operator recorded as given back. */
  readonly refundedMinor: number;
  /** Each payment in the settlement's own currency, in the order in which they came. */
  readonly collections: readonly number[];
  /** The oldest first. */
  readonly pending: readonly Pending[];
  /** As `exceptionText` writes them, sorted. */
  readonly exceptions: readonly string[];
  /** How many events of the simulated provider have arrived. */
  readonly simulated: number;
  /** Collection has begun, so the simulated provider acts. */
  readonly collecting: boolean;
  /** The recipient is active. */
  readonly active: boolean;
  /** What verification says about the frozen name now. */
  readonly verification: 'none' | 'verified' | 'rejected';
  /** The last decision about the frozen name: it counts when the recipient has another name. */
  readonly decision: 'none' | 'verified' | 'rejected';
  /** The clock was moved to the end of the current wait. */
  readonly waitOver: boolean;
  /** Somebody pressed "Request Cancellation" in Temporal UI. */
  readonly cancelRequested: boolean;
  /** A request to move the clock had no answer: it may still have an effect. */
  readonly advanceUnknown: boolean;
  /** As `advanceUnknown`, for an operator's decision about the payout. */
  readonly resolutionUnknown: RailAnswer | null;
  /** The rail was called, and its answer is under way. */
  readonly called: boolean;
  /** The rail's first answer, once it is recorded. No other one counts. */
  readonly answer: RailAnswer | null;
  /** Answers that a test helper was asked for. */
  readonly requested: readonly RailAnswer[];
};

/** What a read shows. */
export type Seen = Pick<World, 'status' | 'failure' | 'refundedMinor' | 'exceptions'> & {
  readonly receivedMinor: number;
};

export const firstWorld = (scenario: Scenario): World => ({
  status: 'accepted',
  failure: null,
  arrivedMinor: 0,
  refundedMinor: 0,
  collections: [],
  pending: [],
  exceptions: [],
  simulated: 0,
  collecting: false,
  active: true,
  verification: scenario.verified ? 'verified' : 'none',
  decision: scenario.verified ? 'verified' : 'none',
  waitOver: false,
  cancelRequested: false,
  advanceUnknown: false,
  resolutionUnknown: null,
  called: false,
  answer: null,
  requested: [],
});

const TERMINAL: readonly Status[] = ['settled', 'rejected', 'expired', 'failed', 'canceled'];
export const isTerminal = (status: Status): boolean => TERMINAL.includes(status);
const UNFUNDED: readonly Status[] = ['accepted', 'compliance_hold', 'awaiting_funds'];
export const isUnfunded = (status: Status): boolean => UNFUNDED.includes(status);
/** Once a call to the rail may have gone out, what the payer's bank takes back changes no state. */
const PAYOUT: readonly Status[] = ['paying_out', 'needs_review', 'settled'];
export const isPayout = (status: Status): boolean => PAYOUT.includes(status);

export const isCovered = ({ amountMinor }: Scenario, { arrivedMinor }: World): boolean => arrivedMinor >= amountMinor;

/** `amount_received`. It never falls below what was given back, or is on its way to the recipient or paid out. */
export const receivedMinor = ({ amountMinor }: Scenario, { status, arrivedMinor, refundedMinor }: World): number =>
  Math.max(arrivedMinor, refundedMinor + (isPayout(status) ? amountMinor : 0));

type Money = Pick<Seen, 'status' | 'receivedMinor' | 'refundedMinor'>;

/** What is owed back of what came in. */
export function refundDueMinor(amountMinor: number, { status, receivedMinor, refundedMinor }: Money): number {
  const leftMinor = receivedMinor - refundedMinor;
  if (isUnfunded(status)) return 0;
  if (status === 'funded') return Math.max(0, leftMinor - amountMinor);
  return isPayout(status) ? leftMinor - amountMinor : leftMinor;
}

export type ExceptionType = 'overpaid' | 'currency_mismatch' | 'late_evidence' | 'disputed' | 'returned';

/** An exception as a read shows it, without its time, its evidence and its reason. */
export const exceptionText = (type: string, amount: string | undefined, currency: string | undefined): string =>
  [type, amount ?? '-', currency ?? '-'].join(' ');

export const OWN_CURRENCY = 'USD';

export const decimal = (minor: number): string => `${Math.floor(minor / 100)}.${String(minor % 100).padStart(2, '0')}`;

/**
 * @param amountMinor null where nobody knows it
 * @param currency what the event names; else it is the settlement's, if there is an amount
 */
export function withException(
  world: World,
  type: ExceptionType,
  amountMinor: number | null,
  currency: string | undefined = amountMinor === null ? undefined : OWN_CURRENCY,
): World {
  const text = exceptionText(type, amountMinor === null ? undefined : decimal(amountMinor), currency);
  return { ...world, exceptions: [...world.exceptions, text].toSorted() };
}
