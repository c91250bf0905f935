/** The payer's bank and the operators' transfers: where each cent is, counted without the service's books. */
import { isTerminal, type SettlementStatus, UNFUNDED_STATUSES } from '../../domain/settlement/state.ts';
import type { Bank, Payment, Situation } from './situation.ts';

const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const notNegative = (amount: bigint): bigint => (amount > 0n ? amount : 0n);

const isUnderWay = (status: SettlementStatus): boolean => status === 'paying_out' || status === 'needs_review';

/** What the service must hold for the settlement, and what it owes the payer. */
export function placesOf({ bank, settlement }: Situation): { readonly heldMinor: bigint; readonly dueMinor: bigint } {
  const { keptMinor, atRiskMinor } = bank;
  const { status, amountMinor } = settlement;
  if (UNFUNDED_STATUSES.includes(status)) return { heldMinor: keptMinor, dueMinor: 0n };
  if (status === 'funded')
    return { heldMinor: smaller(keptMinor, amountMinor), dueMinor: notNegative(keptMinor - amountMinor) };
  if (isUnderWay(status)) return { heldMinor: amountMinor, dueMinor: keptMinor - (amountMinor - atRiskMinor) };
  return { heldMinor: status === 'settled' ? amountMinor : 0n, dueMinor: keptMinor };
}

/** A payment arrives, in the settlement's currency. */
export const withPayment = (bank: Bank, payment: Payment): Bank => ({
  ...bank,
  payments: [...bank.payments, payment],
  keptMinor: bank.keptMinor + payment.amountMinor,
});

/** The payer's bank takes back a payment, or a part of it. */
export function withTaking(situation: Situation, index: number, amountMinor: bigint): Bank {
  const { bank, settlement } = situation;
  const { status } = settlement;
  const payments = bank.payments.map((payment, at) => (at === index ? { ...payment, isTaken: true } : payment));
  const taken = { ...bank, payments };
  if (!isUnderWay(status)) {
    const isTakenBeforePayout = bank.isTakenBeforePayout || !isTerminal(status);
    return { ...taken, isTakenBeforePayout, keptMinor: notNegative(bank.keptMinor - amountMinor) };
  }
  const ofDueMinor = smaller(amountMinor, placesOf(situation).dueMinor);
  const ofPayoutMinor = smaller(amountMinor - ofDueMinor, settlement.amountMinor - bank.atRiskMinor);
  return {
    ...taken,
    keptMinor: bank.keptMinor - ofDueMinor - ofPayoutMinor,
    atRiskMinor: bank.atRiskMinor + ofPayoutMinor,
  };
}

/** The settlement has left `from`: a payout that ended is paid, or is here again. */
export function afterPayout(bank: Bank, from: SettlementStatus, to: SettlementStatus, amountMinor: bigint): Bank {
  if (!isUnderWay(from) || isUnderWay(to)) return bank;
  const paidMinor = to === 'settled' ? amountMinor - bank.atRiskMinor : 0n;
  return { ...bank, keptMinor: bank.keptMinor - paidMinor, atRiskMinor: 0n };
}
