/** Opening a verification that the identity provider decides: for partners (contract §8) and for consumers (§12). */
import { openProviderVerification, type ProviderOpening, storeApplicant } from '../../db/commands/verification.ts';
import type { Answer } from '../../db/queries/idempotency-key.ts';
import { DomainError } from '../../domain/error.ts';
import type { Applicant } from '../../domain/idverify.ts';
import type { Verification } from '../../domain/verification.ts';
import type { ApiDeps } from '../deps.ts';

type Opened = { readonly verification: Verification; readonly applicant: Applicant; readonly simulation: boolean };

/**
 * Opens a verification, or continues the open one, and creates its applicant at the provider. It is safe to repeat.
 *
 * @param show the body of the answer
 * @throws DomainError `provider_not_configured`, `idempotency_key_reused`, `not_found`, `state_conflict`
 */
export async function openApplicant(
  deps: ApiDeps,
  opening: ProviderOpening,
  show: (opened: Opened) => Readonly<Record<string, unknown>>,
): Promise<Answer> {
  const provider = deps.idverify;
  if (!provider) throw new DomainError('provider_not_configured');
  const opened = await openProviderVerification(deps, opening);
  if ('answered' in opened) return opened.answered;
  const { recipient, verification, levelName } = opened;
  const { verificationId, verificationType } = verification;
  const { email, phone } = recipient;
  const applicant = await provider.createApplicant({ verificationId, verificationType, levelName, email, phone });
  const { simulation } = provider;
  const stored = { applicantId: applicant.applicantId, simulated: simulation, requestId: opening.requestId };
  return await storeApplicant(deps, opened, stored, {
    keyed: opening.keyed,
    status: 201,
    show: () => show({ verification: { ...verification, applicantId: applicant.applicantId }, applicant, simulation }),
  });
}
