/**
 * A settlement's states, its transitions, and how long it waits in each state, as data (contract §6). A database
 * trigger refuses every other transition. `docs/state-machines.md` is generated from this table.
 */
import { METHOD_RULES, type PaymentMethod } from '../payment-method.ts';
import type { Pricing } from '../pricing.ts';
import type { EnvironmentName } from '../runtime.ts';

export const SETTLEMENT_STATUSES = [
  'accepted',
  'compliance_hold',
  'awaiting_funds',
  'funded',
  'paying_out',
  'needs_review',
  'settled',
  'rejected',
  'expired',
  'failed',
  'canceled',
] as const;
export type SettlementStatus = (typeof SETTLEMENT_STATUSES)[number];

export const TERMINAL_STATUSES = [
  'settled',
  'rejected',
  'expired',
  'failed',
  'canceled',
] as const satisfies readonly SettlementStatus[];

export const isTerminal = (status: SettlementStatus): boolean =>
  (TERMINAL_STATUSES as readonly SettlementStatus[]).includes(status);

/** The states in which a settlement has work left. */
export const OPEN_STATUSES: readonly SettlementStatus[] = SETTLEMENT_STATUSES.filter((status) => !isTerminal(status));

export type Transition = {
  readonly from: SettlementStatus | null;
  readonly to: SettlementStatus;
  readonly when: string;
};

export const TRANSITIONS: readonly Transition[] = [
  { from: null, to: 'accepted', when: 'record committed' },
  { from: 'accepted', to: 'rejected', when: 'screening hit, recipient inactive, or a launch gate closed' },
  { from: 'accepted', to: 'compliance_hold', when: 'amount of 1 000.00 or more and recipient not verified' },
  { from: 'accepted', to: 'awaiting_funds', when: 'compliance passes' },
  { from: 'accepted', to: 'canceled', when: 'canceled by the partner' },
  { from: 'compliance_hold', to: 'awaiting_funds', when: 'compliance passes' },
  {
    from: 'compliance_hold',
    to: 'rejected',
    when: 'verification rejected, recipient inactive, or a launch gate closed',
  },
  { from: 'compliance_hold', to: 'expired', when: 'seven days without a decision' },
  { from: 'compliance_hold', to: 'canceled', when: 'canceled by the partner' },
  { from: 'awaiting_funds', to: 'funded', when: 'evidence covers the amount' },
  { from: 'awaiting_funds', to: 'failed', when: 'collection failed, or the money was returned or disputed' },
  { from: 'awaiting_funds', to: 'expired', when: 'window over: card 30 minutes, ach 5 days, wire 10 days' },
  { from: 'awaiting_funds', to: 'canceled', when: 'canceled by the partner' },
  { from: 'funded', to: 'paying_out', when: 'payout gate open and recipient active; payout sent' },
  { from: 'funded', to: 'failed', when: 'payout gate closed, recipient inactive, or the money returned or disputed' },
  { from: 'paying_out', to: 'settled', when: 'payout confirmed; certificate issued' },
  { from: 'paying_out', to: 'failed', when: 'payout refused' },
  { from: 'paying_out', to: 'needs_review', when: 'three days without an outcome: unknown is not failed' },
  { from: 'needs_review', to: 'settled', when: 'payout confirmed by the rail, or resolved as paid by operators' },
  { from: 'needs_review', to: 'failed', when: 'payout refused by the rail, or resolved as refused by operators' },
];

export const canMove = (from: SettlementStatus, to: SettlementStatus): boolean =>
  TRANSITIONS.some((transition) => transition.from === from && transition.to === to);

/** Money is collected, or is held until collection begins. In these states a settlement can be canceled. */
export const UNFUNDED_STATUSES: readonly SettlementStatus[] = ['accepted', 'compliance_hold', 'awaiting_funds'];

/** The collection has not begun. */
export const isBeforeCollection = (status: SettlementStatus): boolean =>
  status === 'accepted' || status === 'compliance_hold';

/** A call to the rail may have gone out, or the payout is confirmed: the amount is not given back. */
export const PAYOUT_STATUSES: readonly SettlementStatus[] = ['paying_out', 'needs_review', 'settled'];

/** The states whose wait ends with any evidence that is pending. */
export const EVIDENCE_STATUSES: readonly SettlementStatus[] = ['awaiting_funds', 'paying_out', 'needs_review'];

const DAY_MS = 24 * 60 * 60_000;
const COMPLIANCE_WINDOW_MS = 7 * DAY_MS;
const PAYOUT_WINDOW_MS = 3 * DAY_MS;

/** How long a settlement may wait in a state, in milliseconds; undefined for a state without a time limit. */
export function waitWindowMs(status: SettlementStatus, method: PaymentMethod): number | undefined {
  if (status === 'compliance_hold') return COMPLIANCE_WINDOW_MS;
  if (status === 'awaiting_funds') return METHOD_RULES[method].fundingWindowMs;
  return status === 'paying_out' ? PAYOUT_WINDOW_MS : undefined;
}

/** From this amount on (minor units of the source currency) the recipient must be verified (contract §6). */
export const VERIFICATION_THRESHOLD_MINOR = 100_000n;

export const PURPOSES = ['family_support', 'goods', 'services', 'payroll', 'rent', 'other'] as const;
export type Purpose = (typeof PURPOSES)[number];

/** The route that created the settlement. No rule depends on it after creation. */
export type Origin = 'v2' | 'caribbean' | 'consumer';

/** Why a settlement ended without being settled, or was refused. `message` is public. */
export type Failure = { readonly code: string; readonly message: string };

/** One transition as stored; `from` is null for the first. */
export type SettlementTransition = {
  readonly sequence: number;
  readonly from: SettlementStatus | null;
  readonly to: SettlementStatus;
  readonly at: Date;
  readonly reason: string | null;
  readonly evidenceId: string | null;
};

/**
 * A settlement as stored, with the price of its acceptance. Amounts in minor units, the rate in millionths, the clock
 * offset in milliseconds.
 */
export type Settlement = Pricing & {
  readonly settlementId: string;
  readonly orgId: string;
  readonly origin: Origin;
  readonly status: SettlementStatus;
  /** Counts the transitions; the `sequence` of the latest one. */
  readonly version: number;
  /** Counts the events; the `sequence` of the latest one. */
  readonly eventSequence: number;
  readonly recipientId: string;
  /** The frozen payee (contract §4), sealed. */
  readonly payeeSealed: string;
  /** The payee's digest, in lower-case hex. */
  readonly payeeSha256: string;
  /** What came in, less what the payer's bank took back. */
  readonly amountReceivedMinor: bigint;
  /** What operators recorded as given back to the payer. */
  readonly amountRefundedMinor: bigint;
  /**
   * What the payer's bank took back of money that was not here any more: on its way, paid out or given back. It is
   * deducted if the payout fails, and the next payment makes up for it. Nothing is due back meanwhile.
   */
  readonly takenBackMinor: bigint;
  readonly purpose: Purpose | null;
  readonly reference: string | null;
  readonly metadata: Record<string, string>;
  readonly environment: EnvironmentName;
  readonly failure: Failure | null;
  /** End of the current wait, on the settlement's own clock. */
  readonly expiresAt: Date | null;
  /** How far this settlement's own clock runs ahead (test helpers, contract §6). */
  readonly clockOffsetMs: number;
  readonly certificateId: string | null;
  readonly requestId: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/**
 * The time on the settlement's own clock when real time is `now`. Waits are judged by it alone. The settlement's last
 * change does not count, because another process, whose clock may be wrong, may have dated it.
 */
export const settlementTime = ({ clockOffsetMs }: Pick<Settlement, 'clockOffsetMs'>, now: Date): Date =>
  new Date(now.getTime() + clockOffsetMs);

/** The fields that acceptance decides. The others start the same for every settlement. */
export type NewSettlement = Omit<
  Settlement,
  | 'status'
  | 'version'
  | 'eventSequence'
  | 'amountReceivedMinor'
  | 'amountRefundedMinor'
  | 'takenBackMinor'
  | 'failure'
  | 'expiresAt'
  | 'clockOffsetMs'
  | 'certificateId'
  | 'updatedAt'
>;

/** A settlement that was just accepted. */
export const acceptedSettlement = (record: NewSettlement): Settlement => ({
  status: 'accepted',
  version: 1,
  eventSequence: 1,
  amountReceivedMinor: 0n,
  amountRefundedMinor: 0n,
  takenBackMinor: 0n,
  failure: null,
  expiresAt: null,
  clockOffsetMs: 0,
  certificateId: null,
  updatedAt: record.createdAt,
  // Last: V8 takes 20 µs for a dozen fields that follow it.
  ...record,
});
