/** The payer's bank and the operators' transfers: where each cent is, counted without the service's books. */
import { isTerminal, PAYOUT_STATUSES, UNFUNDED_STATUSES } from '../../domain/settlement/state.ts';
import type { Bank, Payment, Situation } from './situation.ts';

const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const notNegative = (amount: bigint): bigint => (amount > 0n ? amount : 0n);

/** What the service must hold for the settlement, and what it owes the payer. It owes nothing while it has a loss. */
export function placesOf({ bank, settlement }: Situation): { readonly heldMinor: bigint; readonly dueMinor: bigint } {
  const { balanceMinor } = bank;
  const { status, amountMinor } = settlement;
  if (UNFUNDED_STATUSES.includes(status)) return { heldMinor: balanceMinor, dueMinor: 0n };
  if (isTerminal(status) && status !== 'settled') return { heldMinor: 0n, dueMinor: notNegative(balanceMinor) };
  return {
    heldMinor: PAYOUT_STATUSES.includes(status) ? amountMinor : notNegative(smaller(balanceMinor, amountMinor)),
    dueMinor: notNegative(balanceMinor - amountMinor),
  };
}

/** What the payer's bank sent and has not taken back, whatever the service did with it. */
export const arrivedMinor = ({ bank, refunds }: Situation): bigint =>
  refunds.reduce((sum, { amountMinor }) => sum + amountMinor, bank.balanceMinor);

/** A payment arrives, in the settlement's currency. */
export const withPayment = (bank: Bank, payment: Payment): Bank => ({
  ...bank,
  payments: [...bank.payments, payment],
  balanceMinor: bank.balanceMinor + payment.amountMinor,
});

/** The payer's bank takes back a payment, or a part of it. */
export function withTaking({ bank, settlement }: Situation, index: number, amountMinor: bigint): Bank {
  const { status } = settlement;
  return {
    ...bank,
    payments: bank.payments.map((payment, at) => (at === index ? { ...payment, isTaken: true } : payment)),
    isTakenBeforePayout: bank.isTakenBeforePayout || status === 'funded' || UNFUNDED_STATUSES.includes(status),
    balanceMinor: bank.balanceMinor - amountMinor,
  };
}
