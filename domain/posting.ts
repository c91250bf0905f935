/**
 * The double-entry journal of simulated money (contract §6). Debits are positive, credits negative. Every
 * set of postings sums to zero per currency, and is written once per settlement and step. Fees are earned when the
 * settlement settles, so until then everything that was collected can still be booked as due back.
 */
import type { Currency } from './money.ts';
import type { PaymentMethod } from './payment-method.ts';
import type { Settlement, SettlementStatus } from './settlement.ts';

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

type Priced = Pick<
  Settlement,
  | 'paymentMethod'
  | 'amountMinor'
  | 'sourceCurrency'
  | 'destinationAmountMinor'
  | 'destinationCurrency'
  | 'inputFeeMinor'
  | 'platformFeeMinor'
  | 'totalFeesMinor'
  | 'amountReceivedMinor'
>;

/** Collected money that is held for the settlement. */
export const collectionPostings = (settlement: Priced, amountMinor: bigint): Posting[] =>
  transfer(CLEARING[settlement.paymentMethod], 'settlement_funds', amountMinor, settlement.sourceCurrency);

/** Collected money that is due back, because it was too much or too late. */
export const surplusPostings = (settlement: Priced, amountMinor: bigint): Posting[] =>
  transfer(CLEARING[settlement.paymentMethod], 'refund_due', amountMinor, settlement.sourceCurrency);

/** @param settlement its row before the transition; `collectionPostings` has booked everything that was received */
export function transitionPostings(settlement: Priced, from: SettlementStatus, to: SettlementStatus): Posting[] {
  const { sourceCurrency, totalFeesMinor } = settlement;
  const netMinor = settlement.amountMinor - totalFeesMinor;
  switch (to) {
    case 'funded':
      return transfer(
        'settlement_funds',
        'refund_due',
        settlement.amountReceivedMinor - settlement.amountMinor,
        sourceCurrency,
      );
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
      return heldFunds(settlement, from).flatMap(([account, amountMinor]) =>
        transfer(account, 'refund_due', amountMinor, sourceCurrency),
      );
    default:
      return [];
  }
}

/** The accounts that hold the money of a settlement when it ends without being settled. */
function heldFunds(settlement: Priced, from: SettlementStatus): [Account, bigint][] {
  switch (from) {
    case 'accepted':
    case 'compliance_hold':
    case 'awaiting_funds':
      return [['settlement_funds', settlement.amountReceivedMinor]];
    case 'funded':
      return [['settlement_funds', settlement.amountMinor]];
    case 'paying_out':
    case 'needs_review':
      return [
        ['settlement_funds', settlement.totalFeesMinor],
        ['payout_in_transit', settlement.amountMinor - settlement.totalFeesMinor],
      ];
    default:
      return [];
  }
}

/** What was received and is owed back; minor units of the source currency (contract §6). */
export function refundDueMinor({
  status,
  amountMinor,
  amountReceivedMinor,
}: Pick<Settlement, 'status' | 'amountMinor' | 'amountReceivedMinor'>): bigint {
  switch (status) {
    case 'accepted':
    case 'compliance_hold':
    case 'awaiting_funds':
      return 0n;
    case 'funded':
    case 'paying_out':
    case 'needs_review':
    case 'settled':
      return amountReceivedMinor - amountMinor;
    case 'rejected':
    case 'expired':
    case 'failed':
    case 'canceled':
      return amountReceivedMinor;
  }
}
