/** The simulated identity provider's events: their bytes, their signature, their delivery to our own webhook. */
import { createHmac } from 'node:crypto';
import { simulatedApplicantId } from '../../db/id.ts';
import type { ReviewAnswer } from '../../domain/idverify.ts';
import type { Verification } from '../../domain/verification.ts';
import type { ActivityDeps } from '../deps.ts';
import { postSigned } from './signed-post.ts';

export type IdverifyMoment =
  | { readonly type: 'applicantPending' }
  | { readonly type: 'applicantReviewed'; readonly answer: ReviewAnswer };

/** The event's bytes; the same arguments always give the same bytes. */
export function idverifyEvent(
  verification: Pick<Verification, 'verificationId' | 'createdAt'>,
  eventId: string,
  moment: IdverifyMoment,
): Buffer {
  const reviewed = moment.type === 'applicantReviewed';
  return Buffer.from(
    JSON.stringify({
      type: moment.type,
      applicantId: simulatedApplicantId(verification.verificationId),
      externalUserId: verification.verificationId,
      correlationId: eventId,
      sandboxMode: true,
      reviewStatus: reviewed ? 'completed' : 'pending',
      createdAtMs: verification.createdAt.toISOString(),
      ...(reviewed
        ? {
            reviewResult: {
              reviewAnswer: moment.answer,
              ...(moment.answer === 'RED' ? { rejectLabels: ['DOCUMENT_TEMPLATE'] } : {}),
            },
          }
        : {}),
    }),
  );
}

/** `X-Payload-Digest` over exact bytes (contract §9). */
export const signIdverify = (secret: string, bytes: Buffer): Record<string, string> => ({
  'x-payload-digest': createHmac('sha256', secret).update(bytes).digest('hex'),
  'x-payload-digest-alg': 'HMAC_SHA256_HEX',
});

export const postIdverifyEvent = (deps: ActivityDeps, bytes: Buffer): Promise<void> =>
  postSigned(deps, '/v2/webhooks/idverify', bytes, signIdverify(deps.idverifyWebhookSecret, bytes));
