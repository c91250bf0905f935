/** Opening a verification that the identity provider decides: for partners (contract §8) and for consumers (§12). */
import {
  answerApplicant,
  openProviderVerification,
  type ProviderOpening,
  readWithApplicant,
} from '../../db/commands/verification.ts';
import type { Answer } from '../../db/queries/idempotency-key.ts';
import { DomainError } from '../../domain/error.ts';
import { type IdentityProvider, levelOf } from '../../domain/idverify.ts';
import type { Verification } from '../../domain/verification.ts';
import type { ApiDeps } from '../deps.ts';

type Show = (verification: Verification) => Readonly<Record<string, unknown>>;

/**
 * Opens a verification, or continues the open one. The verification's workflow creates its applicant at the provider.
 * It is safe to repeat.
 *
 * @param showFor the body of the answer, once the applicant exists
 * @throws DomainError `provider_not_configured`, `idempotency_key_reused`, `not_found`, `state_conflict`,
 *   `temporarily_unavailable`; the refusal of the opening
 */
export async function openApplicant(
  deps: ApiDeps,
  opening: ProviderOpening,
  showFor: (provider: IdentityProvider, verification: Verification) => Promise<Show>,
): Promise<Answer> {
  const provider = deps.idverify;
  const unconfigured = new DomainError('provider_not_configured');
  const refusal = opening.refusal ?? (provider ? undefined : unconfigured);
  let opened = await openProviderVerification(deps, { ...opening, refusal });
  if ('answered' in opened) return opened.answered;
  if (!provider) throw unconfigured;
  // Normally one try. A run answers a repeated try as before, so another one follows a try that failed for good, or
  // whose applicant the database has lost since. The verification is read in between: every try fails while it is lost.
  for (let number = 1; opened.verification.applicantId === null; number += 1) {
    await deps.createApplicant(opened.verification, opening.requestId, number);
    opened = await readWithApplicant(deps, opened, opening);
  }
  const show = await showFor(provider, opened.verification);
  return await answerApplicant(deps, opened, { keyed: opening.keyed, status: 201, show });
}

/** The answer with a new token for the provider's widget, which no other answer has. */
export async function withToken(provider: IdentityProvider, verification: Verification): Promise<Show> {
  const { verificationId } = verification;
  const { token, expiresAt } = await provider.issueToken({ verificationId, levelName: levelOf(verification) });
  return ({ applicantId }) => ({
    verification_id: verificationId,
    applicant_id: applicantId,
    sdk_access_token: token,
    sdk_access_token_expires_at: expiresAt.toISOString(),
    provider: 'idverify',
    simulation: provider.simulation,
  });
}
