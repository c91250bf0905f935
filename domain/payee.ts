/**
 * Who is paid (contract §4). A settlement freezes its payee when it is accepted: screening, verification and payout use
 * the frozen payee, so a later change of the recipient does not reach a settlement under way.
 */
import type { Rail } from './corridor.ts';
import { type GivenBankDetails, lastFour, type MobileDetails, type Recipient } from './recipient.ts';

export type Payee = Pick<Recipient, 'name' | 'country' | 'entityType'> & {
  readonly rail: Rail;
  /** Only for `bank_transfer`. */
  readonly bankDetails: GivenBankDetails | null;
  /** Only for `mobile_money`. */
  readonly mobileDetails: MobileDetails | null;
};

/**
 * The payee of a new settlement: the recipient as it is now, with the payout details of the rail.
 *
 * @param accountNumber in clear; null for a recipient without bank details
 */
export function freezePayee(recipient: Recipient, rail: Rail, accountNumber: string | null): Payee {
  const { name, country, entityType, bankDetails, mobileDetails } = recipient;
  return {
    name,
    country,
    entityType,
    rail,
    bankDetails: rail === 'bank_transfer' ? withAccountNumber(bankDetails, accountNumber) : null,
    mobileDetails: rail === 'mobile_money' ? mobileDetails : null,
  };
}

function withAccountNumber(
  bankDetails: Recipient['bankDetails'],
  accountNumber: string | null,
): GivenBankDetails | null {
  if (bankDetails === null || accountNumber === null) return null;
  const { account_number_last4: _last4, ...details } = bankDetails;
  return { ...details, account_number: accountNumber };
}

/** A payee as the settlement's owner sees it. */
export function payeeResource({ name, country, rail, bankDetails, mobileDetails }: Payee) {
  const account = bankDetails?.account_number ?? mobileDetails?.phone_number;
  return { name, country, rail, account_last4: account === undefined ? null : lastFour(account) };
}

export type PayeeResource = ReturnType<typeof payeeResource>;
