/**
 * Who is paid (contract §4). A settlement freezes its payee when it is accepted: screening, verification and payout use
 * the frozen payee, so a later change of the recipient does not reach a settlement under way.
 */
import { CORRIDORS, type CorridorId, type Rail } from './corridor.ts';
import { type GivenBankDetails, lastFour, type MobileDetails, type PersonalData, type Recipient } from './recipient.ts';

export type Payee = Pick<Recipient, 'country' | 'entityType'> & {
  readonly name: string;
  readonly rail: Rail;
  /** Only for `bank_transfer`. */
  readonly bankDetails: GivenBankDetails | null;
  /** Only for `mobile_money`. */
  readonly mobileDetails: MobileDetails | null;
};

/**
 * The payee of a new settlement: the recipient as it is now, with the payout details of the rail.
 */
export function freezePayee(
  { country, entityType }: Pick<Recipient, 'country' | 'entityType'>,
  { name, bankDetails, mobileDetails }: PersonalData,
  rail: Rail,
): Payee {
  return {
    name,
    country,
    entityType,
    rail,
    bankDetails: rail === 'bank_transfer' ? bankDetails : null,
    mobileDetails: rail === 'mobile_money' ? mobileDetails : null,
  };
}

/** A payee as the settlement's owner sees it. */
export type PayeeResource = Pick<Payee, 'country' | 'rail'> & {
  /** Null once the recipient is erased. */
  readonly name: string | null;
  readonly account_last4: string | null;
};

export function payeeResource({ name, country, rail, bankDetails, mobileDetails }: Payee): PayeeResource {
  const account = bankDetails?.account_number ?? mobileDetails?.phone_number;
  return { name, country, rail, account_last4: account === undefined ? null : lastFour(account) };
}

/** The payee of an erased recipient: what the settlement says of it. Only who lives where a corridor ends is paid. */
export const erasedPayeeResource = (settlement: {
  readonly corridor: CorridorId;
  readonly payoutRail: Rail;
}): PayeeResource => ({
  name: null,
  country: CORRIDORS[settlement.corridor].destinationCountry,
  rail: settlement.payoutRail,
  account_last4: null,
});
