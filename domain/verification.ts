/**
 * A verification's states and transitions as data (contract §8), how long it stays open, and how it changes its
 * recipient's status. A database trigger refuses every other transition.
 */
import type { Recipient, RecipientVerificationStatus } from './recipient.ts';

export const VERIFICATION_STATUSES = ['pending', 'in_review', 'verified', 'rejected', 'expired'] as const;
export type VerificationStatus = (typeof VERIFICATION_STATUSES)[number];

export const OPEN_VERIFICATION_STATUSES = ['pending', 'in_review'] as const satisfies readonly VerificationStatus[];

export const VERIFICATION_DECISIONS = ['verified', 'rejected'] as const satisfies readonly VerificationStatus[];

export const isOpen = (status: VerificationStatus): boolean =>
  (OPEN_VERIFICATION_STATUSES as readonly VerificationStatus[]).includes(status);

type VerificationTransition = {
  readonly from: VerificationStatus | null;
  readonly to: VerificationStatus;
  readonly when: string;
};

export const VERIFICATION_TRANSITIONS: readonly VerificationTransition[] = [
  { from: null, to: 'pending', when: 'opened by the partner' },
  { from: 'pending', to: 'in_review', when: 'the provider has the documents' },
  { from: 'pending', to: 'verified', when: 'decided as verified' },
  { from: 'pending', to: 'rejected', when: 'decided as rejected' },
  { from: 'pending', to: 'expired', when: 'thirty days without a decision' },
  { from: 'in_review', to: 'verified', when: 'decided as verified' },
  { from: 'in_review', to: 'rejected', when: 'decided as rejected' },
  { from: 'in_review', to: 'expired', when: 'thirty days without a decision' },
];

export const canMoveVerification = (from: VerificationStatus, to: VerificationStatus): boolean =>
  VERIFICATION_TRANSITIONS.some((transition) => transition.from === from && transition.to === to);

const DAY_MS = 24 * 60 * 60_000;
export const VERIFICATION_WINDOW_MS = 30 * DAY_MS;

export const VERIFICATION_TYPES = ['kyc', 'kyb'] as const;
export type VerificationType = (typeof VERIFICATION_TYPES)[number];

export const DOCUMENT_TYPES = [
  'passport',
  'national_id',
  'drivers_license',
  'residence_permit',
  'certificate_of_incorporation',
] as const;
export type DocumentType = (typeof DOCUMENT_TYPES)[number];

export const VERIFICATION_PROVIDERS = ['manual_mock', 'idverify'] as const;
export type VerificationProvider = (typeof VERIFICATION_PROVIDERS)[number];

/** A verification as stored. */
export type Verification = {
  readonly verificationId: string;
  readonly orgId: string;
  readonly recipientId: string;
  readonly verificationType: VerificationType;
  readonly documentType: DocumentType | null;
  readonly documentCountry: string | null;
  readonly status: VerificationStatus;
  readonly provider: VerificationProvider;
  readonly applicantId: string | null;
  /** The provider's name for the kind of check; null for a provider without levels. */
  readonly levelName: string | null;
  /** The recipient's name when the verification was opened. The decision is about this name. Null once it is erased. */
  readonly subjectName: string | null;
  /** Contact data from the request. It is stored and never used (contract §8). */
  readonly givenContact: GivenContact | null;
  readonly verifiedName: string | null;
  readonly rejectionReason: string | null;
  readonly requestId: string;
  readonly createdAt: Date;
  /** When it was verified or rejected; null if it expired. */
  readonly decidedAt: Date | null;
  /** Until then it can be decided. */
  readonly expiresAt: Date;
};

export type GivenContact = {
  readonly email: string | null;
  readonly phone: string | null;
  readonly country: string | null;
};

/** The fields that opening decides. The others follow from the recipient. */
export type NewVerification = Pick<
  Verification,
  | 'verificationId'
  | 'verificationType'
  | 'documentType'
  | 'documentCountry'
  | 'provider'
  | 'levelName'
  | 'givenContact'
  | 'requestId'
  | 'createdAt'
>;

/** A new verification of this recipient. */
export const openedVerification = (recipient: Recipient, opening: NewVerification): Verification => ({
  ...opening,
  orgId: recipient.orgId,
  recipientId: recipient.recipientId,
  status: 'pending',
  applicantId: null,
  subjectName: recipient.name,
  verifiedName: null,
  rejectionReason: null,
  decidedAt: null,
  expiresAt: new Date(opening.createdAt.getTime() + VERIFICATION_WINDOW_MS),
});

/** The type of a verification when the request names none (contract §8). */
export const defaultVerificationType = (entityType: Recipient['entityType']): VerificationType =>
  entityType === 'business' ? 'kyb' : 'kyc';

export type VerificationDecision = {
  readonly to: (typeof VERIFICATION_DECISIONS)[number];
  readonly verifiedName: string | null;
  readonly rejectionReason: string | null;
};

/**
 * Whether a decision repeats the one that was taken. It may leave out the name and the reason. Once the person is
 * erased, nobody knows which name was given.
 */
export const isSameDecision = (verification: Verification, decision: VerificationDecision): boolean => {
  const known = verification.subjectName === null ? { ...decision, verifiedName: null } : decision;
  return (
    verification.status === decision.to &&
    (['verifiedName', 'rejectionReason'] as const).every(
      (given) => known[given] === null || verification[given] === known[given],
    )
  );
};

/**
 * The recipient's `verification_status` after its verification changed state (contract §4). The latest decision counts,
 * also while a new verification is open, which a repeated request can begin. A decision is about the name that was
 * checked: it decides nothing about a recipient with another name. Expiry is not a decision: it does not change a
 * status that another verification gave or may still give.
 *
 * @param othersOpen whether another verification of the recipient is open
 */
export function recipientStatusAfter(
  recipient: Pick<Recipient, 'name' | 'verificationStatus'>,
  verification: Pick<Verification, 'status' | 'subjectName'>,
  othersOpen: boolean,
): RecipientVerificationStatus {
  const { status, subjectName } = verification;
  switch (status) {
    case 'pending':
      return recipient.verificationStatus === 'verified' ? 'verified' : 'pending';
    case 'in_review':
      return recipient.verificationStatus;
    case 'verified':
    case 'rejected':
      // An erasure removes both names, so nobody can compare them any more.
      if (subjectName !== null && subjectName === recipient.name) return status;
      return recipient.verificationStatus === 'pending' && !othersOpen ? 'unverified' : recipient.verificationStatus;
    case 'expired':
      return recipient.verificationStatus === 'pending' && !othersOpen ? 'expired' : recipient.verificationStatus;
  }
}
