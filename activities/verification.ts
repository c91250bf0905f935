/**
 * The activities of a verification: its applicant at the provider, its expiry, and in the local sandbox the events of
 * the simulated provider. An activity that runs twice, or again after a crash, changes nothing more. Recipients' names
 * are read here and not returned.
 */
import type { CommandDeps } from '../db/commands/commit.ts';
import { expireVerification, storeApplicant } from '../db/commands/verification.ts';
import { getRecipient } from '../db/queries/recipient.ts';
import { findVerification } from '../db/queries/verification.ts';
import { DomainError } from '../domain/error.ts';
import { levelOf } from '../domain/idverify.ts';
import { sandboxReview } from '../domain/sandbox/input.ts';
import { isOpen, type Verification, type VerificationStatus } from '../domain/verification.ts';
import type { VerificationInput } from '../workflows/contract.ts';
import type { ActivityDeps } from './deps.ts';
import { ProviderFailure } from './failure.ts';
import { encodeIdverifyEvent, type IdverifyReport, postIdverifyEvent } from './providers/idverify-event.ts';

/** `nowMs` is the workflow's time in epoch milliseconds. */
export type VerificationActivityInput = VerificationInput & { readonly nowMs: number };

/** The state of a verification. `waitMs` until it expires; null when it has ended. */
export type VerificationState = {
  readonly status: VerificationStatus;
  readonly waitMs: number | null;
  /** When it expires or would have expired. */
  readonly until: string;
  readonly isManual: boolean;
};

/** A step of the provider's plan: it sends this event. */
export type VerificationEventStep = { readonly step: number; readonly event: string };

export function verificationActivities(deps: Pick<ActivityDeps, keyof CommandDeps | 'idverify'>) {
  return {
    /**
     * Creates the applicant at the identity provider, and stores its id. The provider knows it by the verification's
     * id, so that a second attempt finds the first one's. The contact data is the recipient's.
     *
     * @throws DomainError `state_conflict` once the verification has ended, or the recipient was deactivated: the provider
     *   is no longer asked
     */
    createApplicant: async (input: VerificationInput): Promise<void> => {
      let isStored = false;
      // Another level may replace the one that the provider was asked for: then it is asked again, and keeps its
      // applicant.
      while (!isStored) {
        const verification = await findVerification(deps, input.orgId, input.verificationId);
        if (!verification) throw new DomainError('not_found');
        if (verification.applicantId !== null) return;
        isStored = await orderApplicant(deps, verification);
      }
    },

    /** pending, in_review → expired, once its time is over. */
    reviewVerification: async ({
      verificationId,
      orgId,
      nowMs,
    }: VerificationActivityInput): Promise<VerificationState> => {
      const at = new Date(nowMs);
      const verification = await expireVerification(deps, orgId, verificationId, at);
      return {
        status: verification.status,
        waitMs: isOpen(verification.status) ? Math.max(0, verification.expiresAt.getTime() - at.getTime()) : null,
        until: verification.expiresAt.toISOString(),
        isManual: verification.provider === 'manual_mock',
      };
    },
  };
}

/** @returns whether the applicant was stored */
async function orderApplicant(
  deps: Pick<ActivityDeps, keyof CommandDeps | 'idverify'>,
  verification: Verification,
): Promise<boolean> {
  const { verificationId, orgId, verificationType } = verification;
  const { isActive, email, phone } = await getRecipient(deps, orgId, verification.recipientId);
  if (!isActive || !isOpen(verification.status)) throw new DomainError('state_conflict');
  const provider = deps.idverify;
  // Another worker may have it, or this one after its restart: the workflow would remember a final failure.
  if (!provider) throw new ProviderFailure('identity_provider', 'This worker has no identity provider.');
  const order = { verificationId, verificationType, levelName: levelOf(verification), email, phone };
  const applicantId = await provider.createApplicant(order).catch((error: unknown) => {
    throw error instanceof DomainError ? new ProviderFailure('identity_provider', error.message) : error;
  });
  return await storeApplicant(deps, verification, { applicantId, simulated: provider.simulation });
}

/** The simulated identity provider, for the local sandbox only. */
export function verificationSandboxActivities(deps: ActivityDeps) {
  const reportsFor = async ({
    verificationId,
    orgId,
  }: VerificationInput): Promise<{ verification: Verification; reports: IdverifyReport[] }> => {
    const verification = await findVerification(deps, orgId, verificationId);
    if (!verification) throw new DomainError('not_found');
    const { subjectName } = verification;
    const answer = subjectName === null ? undefined : sandboxReview(subjectName);
    return {
      verification,
      reports: answer ? [{ type: 'applicantPending' }, { type: 'applicantReviewed', answer }] : [],
    };
  };
  return {
    /** What the verification's name selects in the sandbox, as a list of events that does not contain the name. */
    planVerification: async (input: VerificationInput): Promise<VerificationEventStep[]> => {
      const { reports } = await reportsFor(input);
      return reports.map(({ type }, step) => ({ step, event: type }));
    },

    /** Posts one event of the plan. When the API refuses it or is not running, the activity is retried. */
    postVerificationEvent: async (input: VerificationInput & { readonly step: number }): Promise<void> => {
      const { verification, reports } = await reportsFor(input);
      const report = reports[input.step];
      if (!report) throw new DomainError('not_found');
      await postIdverifyEvent(
        deps,
        encodeIdverifyEvent(verification, `sim_${verification.verificationId}_${input.step}`, report),
      );
    },
  };
}
