/** A recipient of payouts (contract §4). */
import type { Corridor, Rail } from './corridor.ts';
import { bodyFault, type ValidationFault } from './error.ts';

export const RECIPIENT_VERIFICATION_STATUSES = ['unverified', 'pending', 'verified', 'rejected', 'expired'] as const;
export type RecipientVerificationStatus = (typeof RECIPIENT_VERIFICATION_STATUSES)[number];

/** Bank details as stored in clear and shown; the account number itself is sealed beside them. */
export type BankDetails = {
  readonly bank_name: string;
  readonly account_number_last4: string;
  readonly account_type?: 'checking' | 'savings' | undefined;
  readonly branch_code?: string | undefined;
  readonly routing_number?: string | undefined;
  readonly swift_bic?: string | undefined;
  readonly currency: string;
};

export type MobileDetails = { readonly provider: string; readonly phone_number: string };

export type Recipient = {
  readonly recipientId: string;
  readonly orgId: string;
  readonly kind: 'vendor' | 'contractor';
  readonly entityType: 'individual' | 'business';
  readonly name: string;
  readonly country: string;
  readonly email: string | null;
  readonly phone: string | null;
  readonly bankDetails: BankDetails | null;
  readonly mobileDetails: MobileDetails | null;
  readonly metadata: Record<string, string>;
  readonly isActive: boolean;
  readonly verificationStatus: RecipientVerificationStatus;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** Why this recipient cannot be paid over this corridor and rail; empty when it can (contract §5). */
export function payoutFaults(recipient: Recipient, corridor: Corridor, rail: Rail): ValidationFault[] {
  const faults: ValidationFault[] = [];
  if (recipient.country !== corridor.destinationCountry) {
    faults.push(bodyFault('recipient_id', `the recipient's country must be the corridor's destination, ${corridor.destinationCountry}`));
  }
  if (rail === 'bank_transfer' && recipient.bankDetails === null) faults.push(bodyFault('payout_rail', 'bank_transfer needs a recipient with bank_details'));
  if (rail === 'mobile_money' && recipient.mobileDetails === null) faults.push(bodyFault('payout_rail', 'mobile_money needs a recipient with mobile_details'));
  return faults;
}

/** The local sandbox's screening: names that act as a hit or steer the simulated payout (contract §6). */
export const SANDBOX_NAMES = { screeningHit: 'SANCTIONED', payoutRefused: 'PAYOUT REFUSED', payoutPending: 'PAYOUT PENDING' } as const;

export const isScreeningHit = (name: string): boolean => name.includes(SANDBOX_NAMES.screeningHit);
