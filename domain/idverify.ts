/** The identity-verification provider (contract §8, §9): what the service sends to it, and what it answers. */
import type { Verification, VerificationType } from './verification.ts';

/** The applicant to verify. The contact data is that of the recipient's record. */
export type ApplicantOrder = {
  /** The provider's key for the applicant too, so that a repeated request creates no second one. */
  readonly verificationId: string;
  readonly verificationType: VerificationType;
  readonly levelName: string;
  readonly email: string | null;
  readonly phone: string | null;
};

/** The token opens the provider's widget for one applicant. It is passed to the caller, and no workflow has it. */
export type SdkToken = { readonly token: string; readonly expiresAt: Date };

/** Each throws DomainError `temporarily_unavailable` when there was no usable answer in time; a retry is safe. */
export type IdentityProvider = {
  readonly simulation: boolean;
  /** Creates the applicant, or finds the one that an earlier call created. @returns its id at the provider */
  createApplicant(order: ApplicantOrder): Promise<string>;
  issueToken(applicant: Pick<ApplicantOrder, 'verificationId' | 'levelName'>): Promise<SdkToken>;
};

export const DEFAULT_LEVEL: Record<VerificationType, string> = { kyc: 'basic-kyc-level', kyb: 'basic-kyb-level' };

/** The set of checks of a verification. */
export const levelOf = ({
  levelName,
  verificationType,
}: Pick<Verification, 'levelName' | 'verificationType'>): string => levelName ?? DEFAULT_LEVEL[verificationType];

export const REVIEW_ANSWERS = ['GREEN', 'RED'] as const;
export type ReviewAnswer = (typeof REVIEW_ANSWERS)[number];

const LABEL = /^[A-Z][A-Z0-9_]{0,63}$/;
const LABELS_MAX = 10;

/** The reason that partners see. Anything but a plain label is dropped, because the text leaves the service. */
export function rejectionReasonOf(labels: readonly string[]): string {
  const known = [...new Set(labels)].filter((label) => LABEL.test(label)).slice(0, LABELS_MAX);
  return known.length > 0 ? known.join(', ') : 'REJECTED_BY_PROVIDER';
}
