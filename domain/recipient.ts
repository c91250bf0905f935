/** A recipient of payouts (contract §4). */
import type { Corridor, Rail } from './corridor.ts';
import { type FieldFault, REQUIRED, requireNoFaults } from './error.ts';

export const RECIPIENT_VERIFICATION_STATUSES = ['unverified', 'pending', 'verified', 'rejected', 'expired'] as const;
export type RecipientVerificationStatus = (typeof RECIPIENT_VERIFICATION_STATUSES)[number];

/** Bank details as they are shown. */
export type BankDetails = {
  readonly bank_name: string;
  readonly account_number_last4: string;
  readonly account_type?: (typeof ACCOUNT_TYPES)[number] | undefined;
  readonly branch_code?: string | undefined;
  readonly routing_number?: string | undefined;
  readonly swift_bic?: string | undefined;
  readonly currency: string;
};

/** Bank details as in a request, with the account number in clear. */
export type GivenBankDetails = Omit<BankDetails, 'account_number_last4'> & { readonly account_number: string };

export type MobileDetails = { readonly provider: string; readonly phone_number: string };

export const RECIPIENT_KINDS = ['vendor', 'contractor'] as const;
export const ENTITY_TYPES = ['individual', 'business'] as const;
export const ACCOUNT_TYPES = ['checking', 'savings'] as const;

export type Recipient = {
  readonly recipientId: string;
  readonly orgId: string;
  readonly kind: (typeof RECIPIENT_KINDS)[number];
  readonly entityType: (typeof ENTITY_TYPES)[number];
  /** Null once it is erased, as are contacts and details. */
  readonly name: string | null;
  readonly country: string;
  readonly email: string | null;
  readonly phone: string | null;
  readonly bankDetails: BankDetails | null;
  readonly mobileDetails: MobileDetails | null;
  readonly metadata: Record<string, string>;
  readonly isActive: boolean;
  readonly verificationStatus: RecipientVerificationStatus;
  /** Its own key, sealed by the service's key; null once it is erased. */
  readonly dataKeySealed: string | null;
  /** When its personal data was made unreadable; an erased recipient is inactive. */
  readonly erasedAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** What is known of the person or company, as given. It is sealed wherever it is stored (contract §4). */
export type PersonalData = {
  readonly name: string;
  readonly email: string | null;
  readonly phone: string | null;
  readonly bankDetails: GivenBankDetails | null;
  readonly mobileDetails: MobileDetails | null;
};

/** The fields of a request for a new recipient. */
export type RecipientDraft = Pick<Recipient, 'kind' | 'entityType' | 'country' | 'metadata'> & PersonalData;

/** The fields of a request to change an object. An absent field stays as it is, null clears it. */
type ChangeOf<Fields> = { readonly [Field in keyof Fields]?: Fields[Field] | null | undefined };

/** The fields of a request to change a recipient, by the same rule, also inside the details. */
export type RecipientChange = Partial<Pick<RecipientDraft, 'name' | 'email' | 'phone' | 'metadata'>> & {
  readonly bankDetails?: ChangeOf<GivenBankDetails> | null;
  readonly mobileDetails?: ChangeOf<MobileDetails> | null;
};

type Details = {
  readonly bankDetails: { readonly routing_number?: string | undefined } | null;
  readonly mobileDetails: MobileDetails | null;
};

/** Both kinds of details as given. */
export type GivenDetails = Pick<PersonalData, 'bankDetails' | 'mobileDetails'>;

/** The fault of a recipient without details (contract §4). */
export const missingDetails = ({ bankDetails, mobileDetails }: Details): FieldFault[] =>
  bankDetails === null && mobileDetails === null
    ? [{ field: null, rule: 'a recipient needs bank_details, mobile_details or both' }]
    : [];

/** The fault of bank details with a routing number that this country does not have (contract §4). */
export function routingFaults(country: string, { bankDetails }: Pick<Details, 'bankDetails'>): FieldFault[] {
  const routingNumber = bankDetails?.routing_number;
  if (country !== 'US' || routingNumber === undefined || isAbaRoutingNumber(routingNumber)) return [];
  const rule = 'must be an ABA routing number: nine digits with a right check digit';
  return [{ field: 'bank_details.routing_number', rule }];
}

/** The rules that the details of a recipient in this country break (contract §4). */
export const detailsFaults = (country: string, details: Details): FieldFault[] => [
  ...missingDetails(details),
  ...routingFaults(country, details),
];

/**
 * The details after a change. What results is judged as a whole.
 *
 * @throws ValidationError
 */
export function changedDetails(
  country: string,
  stored: GivenDetails,
  { bankDetails, mobileDetails }: RecipientChange,
): GivenDetails {
  const bank = merged(stored.bankDetails, bankDetails);
  const mobile = merged(stored.mobileDetails, mobileDetails);
  const faults = [
    ...missingFields('bank_details', bank, ['bank_name', 'account_number', 'currency']),
    ...missingFields('mobile_details', mobile, ['provider', 'phone_number']),
  ];
  // The fields that are missing are complete below: their faults are thrown first.
  const details = { bankDetails: bank as GivenBankDetails | null, mobileDetails: mobile as MobileDetails | null };
  requireNoFaults([...faults, ...detailsFaults(country, details)]);
  return details;
}

function merged<Fields extends object>(
  stored: Fields | null,
  change: ChangeOf<Fields> | null | undefined,
): Partial<Fields> | null {
  if (change === undefined || change === null) return change === null ? null : stored;
  const given = Object.entries({ ...stored, ...change }).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(given) as Partial<Fields>;
}

function missingFields<Fields extends object>(
  object: string,
  fields: Fields | null,
  required: readonly (string & keyof Fields)[],
): FieldFault[] {
  if (fields === null) return [];
  return required.flatMap((field) => (field in fields ? [] : [{ field: `${object}.${field}`, rule: REQUIRED }]));
}

/** The status after a change. A verification counts for one name, so a new name is not verified (contract §4). */
export function verificationAfter(recipient: Recipient, change: RecipientChange): RecipientVerificationStatus {
  const renamed = change.name !== undefined && change.name !== recipient.name;
  const isDecided = recipient.verificationStatus === 'verified' || recipient.verificationStatus === 'rejected';
  return renamed && isDecided ? 'unverified' : recipient.verificationStatus;
}

const ABA_WEIGHTS = [3, 7, 1, 3, 7, 1, 3, 7, 1] as const;

/** Nine digits whose weighted sum is a multiple of ten. Nine zeros have such a sum, but belong to no bank. */
export function isAbaRoutingNumber(text: string): boolean {
  if (!/^[0-9]{9}$/.test(text)) return false;
  const sum = ABA_WEIGHTS.reduce((total, weight, index) => total + weight * Number(text[index]), 0);
  return sum > 0 && sum % 10 === 0;
}

const LAST4 = 4;

/** The part of an account number that is shown. */
export const lastFour = (accountNumber: string): string => accountNumber.slice(-LAST4);

/** The rules that a payout to this recipient over this corridor and rail breaks (contract §5). */
export function payoutFaults(recipient: Recipient, corridor: Corridor, rail: Rail): FieldFault[] {
  const faults: FieldFault[] = [];
  if (recipient.country !== corridor.destinationCountry) {
    faults.push({
      field: 'recipient_id',
      rule: `the recipient's country must be the corridor's destination, ${corridor.destinationCountry}`,
    });
  }
  if (rail === 'bank_transfer' && recipient.bankDetails === null)
    faults.push({ field: 'payout_rail', rule: 'bank_transfer needs a recipient with bank_details' });
  if (rail === 'mobile_money' && recipient.mobileDetails === null)
    faults.push({ field: 'payout_rail', rule: 'mobile_money needs a recipient with mobile_details' });
  return faults;
}
