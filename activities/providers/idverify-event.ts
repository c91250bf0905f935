/** The simulated identity provider's events: their bytes, their signature, and the post to our webhook. */
import { createHmac } from 'node:crypto';
import { simulatedApplicantId } from '../../db/id.ts';
import type { ReviewAnswer } from '../../domain/idverify.ts';
import type { Verification } from '../../domain/verification.ts';
import type { ActivityDeps } from '../deps.ts';
import { postSigned } from './signed-post.ts';

/** What the provider reports about an applicant. */
export type IdverifyReport =
  | { readonly type: 'applicantPending' }
  | { readonly type: 'applicantReviewed'; readonly answer: ReviewAnswer };

/** The bytes of a provider event; the same arguments give the same bytes. */
export function encodeIdverifyEvent(
  verification: Pick<Verification, 'verificationId' | 'createdAt'>,
  eventId: string,
  report: IdverifyReport,
): Buffer {
  const reviewed = report.type === 'applicantReviewed';
  return Buffer.from(
    JSON.stringify({
      type: report.type,
      applicantId: simulatedApplicantId(verification.verificationId),
      externalUserId: verification.verificationId,
      correlationId: eventId,
      sandboxMode: true,
      reviewStatus: reviewed ? 'completed' : 'pending',
      createdAtMs: verification.createdAt.toISOString(),
      ...(reviewed
        ? {
            reviewResult: {
              reviewAnswer: report.answer,
              ...(report.answer === 'RED' ? { rejectLabels: ['DOCUMENT_TEMPLATE'] } : {}),
            },
          }
        : {}),
    }),
  );
}

/** The headers that sign these bytes (contract §9). */
export const signIdverify = (secret: string, bytes: Buffer): Record<string, string> => ({
  'x-payload-digest': createHmac('sha256', secret).update(bytes).digest('hex'),
  'x-payload-digest-alg': 'HMAC_SHA256_HEX',
});

/** @throws ApplicationFailure `webhook_refused`, retryable, when the webhook does not accept the event */
export const postIdverifyEvent = (deps: ActivityDeps, bytes: Buffer): Promise<void> =>
  postSigned(deps, '/v2/webhooks/idverify', bytes, signIdverify(deps.idverifyWebhookSecret, bytes));
