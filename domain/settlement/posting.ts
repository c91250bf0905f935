/**
 * The double-entry journal of simulated money (contract §6). Debits are positive, credits negative. Every
 * set of postings sums to zero per currency, and is written once per settlement and step. Fees are earned when the
 * settlement settles, so until then everything that was collected can still be booked as due back.
 */
import { type Currency, smaller } from '../money.ts';
import type { PaymentMethod } from '../payment-method.ts';
import { PAYOUT_STATUSES, type Settlement, type SettlementStatus, UNFUNDED_STATUSES } from './state.ts';

export const ACCOUNTS = [
  'card_clearing',
  'bank_clearing',
  'internal_funding',
  'settlement_funds',
  'payout_in_transit',
  'fx_position',
  'payout_paid',
  'input_fee_income',
  'platform_fee_income',
  'refund_due',
] as const;
export type Account = (typeof ACCOUNTS)[number];

export type Posting = { readonly account: Account; readonly currency: Currency; readonly amountMinor: bigint };

const CLEARING: Record<PaymentMethod, Account> = {
  card: 'card_clearing',
  ach: 'bank_clearing',
  wire: 'bank_clearing',
  internal: 'internal_funding',
};

const transfer = (debit: Account, credit: Account, amountMinor: bigint, currency: Currency): Posting[] =>
  amountMinor === 0n
    ? []
    : [
        { account: debit, currency, amountMinor },
        { account: credit, currency, amountMinor: -amountMinor },
      ];

type Received = Pick<Settlement, 'status' | 'amountMinor' | 'amountReceivedMinor' | 'amountRefundedMinor'>;

type Priced = Received &
  Pick<
    Settlement,
    | 'paymentMethod'
    | 'sourceCurrency'
    | 'destinationAmountMinor'
    | 'destinationCurrency'
    | 'inputFeeMinor'
    | 'platformFeeMinor'
    | 'totalFeesMinor'
  >;

/** What is held for the settlement, or was paid out for it; minor units of the source currency. */
export function heldMinor({ status, amountMinor, amountReceivedMinor, amountRefundedMinor }: Received): bigint {
  const availableMinor = amountReceivedMinor - amountRefundedMinor;
  if (UNFUNDED_STATUSES.includes(status)) return availableMinor;
  if (status === 'funded') return smaller(amountMinor, availableMinor);
  return PAYOUT_STATUSES.includes(status) ? amountMinor : 0n;
}

/** What was received, is not held or paid out, and was not given back yet (contract §6); minor units. */
export const refundDueMinor = (settlement: Received): bigint =>
  settlement.amountReceivedMinor - settlement.amountRefundedMinor - heldMinor(settlement);

/** Collected money that is held for the settlement. */
export const collectionPostings = (settlement: Priced, amountMinor: bigint): Posting[] =>
  transfer(CLEARING[settlement.paymentMethod], 'settlement_funds', amountMinor, settlement.sourceCurrency);

/** Collected money that is due back, because it was too much or too late. */
export const surplusPostings = (settlement: Priced, amountMinor: bigint): Posting[] =>
  transfer(CLEARING[settlement.paymentMethod], 'refund_due', amountMinor, settlement.sourceCurrency);

/**
 * Money that the payer's bank took back: first of what is due back, then of what is held.
 *
 * @param amountMinor at most what is due back and, before the payout, held
 */
export function reversalPostings(settlement: Priced, amountMinor: bigint): Posting[] {
  const { paymentMethod, sourceCurrency } = settlement;
  const dueMinor = smaller(refundDueMinor(settlement), amountMinor);
  return [
    ...transfer('refund_due', CLEARING[paymentMethod], dueMinor, sourceCurrency),
    ...transfer('settlement_funds', CLEARING[paymentMethod], amountMinor - dueMinor, sourceCurrency),
  ];
}

/** How the step of a refund begins; its reference follows. */
export const REFUND_STEP = 'refund:';

/** Money that was due back and was given back outside of the service. */
export const refundPostings = (settlement: Priced, amountMinor: bigint): Posting[] =>
  transfer('refund_due', CLEARING[settlement.paymentMethod], amountMinor, settlement.sourceCurrency);

/** @param settlement its row before the transition; `collectionPostings` has booked everything that was received */
export function transitionPostings(settlement: Priced, to: SettlementStatus): Posting[] {
  const { sourceCurrency, amountMinor, totalFeesMinor, status } = settlement;
  const netMinor = amountMinor - totalFeesMinor;
  switch (to) {
    case 'funded':
      return transfer('settlement_funds', 'refund_due', settlement.amountReceivedMinor - amountMinor, sourceCurrency);
    case 'paying_out':
      return transfer('settlement_funds', 'payout_in_transit', netMinor, sourceCurrency);
    case 'settled':
      return [
        ...transfer('settlement_funds', 'input_fee_income', settlement.inputFeeMinor, sourceCurrency),
        ...transfer('settlement_funds', 'platform_fee_income', settlement.platformFeeMinor, sourceCurrency),
        ...transfer('payout_in_transit', 'fx_position', netMinor, sourceCurrency),
        ...transfer('fx_position', 'payout_paid', settlement.destinationAmountMinor, settlement.destinationCurrency),
      ];
    case 'rejected':
    case 'failed':
    case 'expired':
    case 'canceled':
      return PAYOUT_STATUSES.includes(status)
        ? [
            ...transfer('settlement_funds', 'refund_due', totalFeesMinor, sourceCurrency),
            ...transfer('payout_in_transit', 'refund_due', netMinor, sourceCurrency),
          ]
        : transfer('settlement_funds', 'refund_due', heldMinor(settlement), sourceCurrency);
    default:
      return [];
  }
}
