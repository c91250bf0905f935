/**
 * The identity-verification provider as the service sees it (contract §8, §9): whom it is asked about, what it hands
 * out, and what the local sandbox's simulation of it decides.
 */
import type { VerificationType } from './verification.ts';

/** Whom the provider is to look at; contact data is the recipient's own, as recorded. */
export type ApplicantOrder = {
  /** The provider's name for the applicant as well: asking twice makes one. */
  readonly verificationId: string;
  readonly verificationType: VerificationType;
  readonly levelName: string;
  readonly email: string | null;
  readonly phone: string | null;
};

/** The token opens the provider's widget for this applicant alone; it is handed on and kept nowhere. */
export type Applicant = {
  readonly applicantId: string;
  readonly sdkAccessToken: string;
  readonly sdkAccessTokenExpiresAt: Date;
};

export type IdentityProvider = {
  readonly simulation: boolean;
  /** @throws DomainError `temporarily_unavailable` when the provider gave no usable answer in time; asking again is safe */
  createApplicant(order: ApplicantOrder): Promise<Applicant>;
};

export const DEFAULT_LEVEL: Record<VerificationType, string> = { kyc: 'basic-kyc-level', kyb: 'basic-kyb-level' };

export const REVIEW_ANSWERS = ['GREEN', 'RED'] as const;
export type ReviewAnswer = (typeof REVIEW_ANSWERS)[number];

const LABEL = /^[A-Z][A-Z0-9_]{0,63}$/;
const LABELS_MAX = 10;

/** A provider's labels as far as they are such: the text reaches partners, so nothing else may ride on it. */
export function rejectionReasonOf(labels: readonly string[]): string {
  const known = [...new Set(labels)].filter((label) => LABEL.test(label)).slice(0, LABELS_MAX);
  return known.length > 0 ? known.join(', ') : 'REJECTED_BY_PROVIDER';
}
