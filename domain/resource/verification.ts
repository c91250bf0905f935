/** A verification as the API and the events show it (contract §8). Only the API shows the verified name. */
import type { Verification } from '../verification.ts';
import { verificationWorkflowId } from '../workflow-id.ts';

/** The data of an event: all fields but the verified name. */
export function verificationResource(verification: Verification) {
  return {
    verification_id: verification.verificationId,
    recipient_id: verification.recipientId,
    org_id: verification.orgId,
    verification_type: verification.verificationType,
    document_type: verification.documentType,
    document_country: verification.documentCountry,
    status: verification.status,
    provider: verification.provider,
    applicant_id: verification.applicantId,
    rejection_reason: verification.rejectionReason,
    created_at: verification.createdAt.toISOString(),
    decided_at: verification.decidedAt?.toISOString() ?? null,
    expires_at: verification.expiresAt.toISOString(),
    workflow_id: verificationWorkflowId(verification.verificationId),
  };
}

/** The fields of VerificationResponse. */
export const verificationDetail = (verification: Verification) => ({
  ...verificationResource(verification),
  verified_name: verification.verifiedName,
});
