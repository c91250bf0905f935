/** The identity provider's webhook (contract §9); what its events mean for a verification is said here. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import {
  decideVerification,
  type LockedVerification,
  lockVerificationTarget,
  moveVerification,
} from '../../db/queries/verification.ts';
import { DomainError, ValidationError } from '../../domain/error.ts';
import { REVIEW_ANSWERS, rejectionReasonOf } from '../../domain/idverify.ts';
import { isLiveMode } from '../../domain/runtime.ts';
import { canMoveVerification, type VerificationDecision } from '../../domain/verification.ts';
import type { ApiDeps } from '../deps.ts';
import { type EventEffect, receiveEvent } from '../event-receipt.ts';
import { singleHeader, verifyDigest } from '../http/provider-signature.ts';
import { verifyThenParse } from '../plugins/signed-body.ts';
import { IdverifyEvent } from '../schemas/idverify-event.ts';
import { ProviderEventReceipt } from '../schemas/provider-event.ts';

const DIGEST_ALGORITHM = 'HMAC_SHA256_HEX';

/** Registered where bodies arrive as raw bytes. */
export const idverifyEventRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/webhooks/idverify',
      {
        config: { access: { auth: 'signature', refusals: ['provider_event_conflict'] } },
        preValidation: verifyThenParse((request) => {
          if (singleHeader(request.raw, 'x-payload-digest-alg') !== DIGEST_ALGORITHM)
            throw new DomainError('signature_invalid');
          verifyDigest(
            singleHeader(request.raw, 'x-payload-digest'),
            request.rawBody,
            deps.config.idverifyWebhookSecrets,
          );
        }),
        schema: {
          tags: ['Provider webhooks'],
          operationId: 'receiveIdverifyEvent',
          summary: "Receive an identity provider's event",
          description:
            'Authenticated by `X-Payload-Digest: <hex HMAC-SHA256 of the body>` with `X-Payload-Digest-Alg: HMAC_SHA256_HEX`. The decision is committed before the answer. The first decision counts; later ones are kept and change nothing.',
          body: IdverifyEvent,
          response: { 200: ProviderEventReceipt },
        },
      },
      async (request) => {
        const event = request.body;
        // What a provider's sandbox decides says nothing about a person in production.
        const fits = !(event.sandboxMode === true && isLiveMode(deps.runtime));
        return await receiveEvent(
          deps,
          {
            provider: 'idverify',
            eventId: event.correlationId,
            type: event.type,
            bytes: request.rawBody,
            requestId: request.id,
          },
          fits ? effectOf(event, request.id) : undefined,
        );
      },
    );
  };

/** What an event does to the verification that it names; undefined for what we do not apply. */
function effectOf(event: IdverifyEvent, requestId: string): EventEffect<LockedVerification> | undefined {
  const verificationId = event.externalUserId;
  if (!verificationId) return undefined;
  const lock: EventEffect<LockedVerification>['lock'] = (tx) => lockVerificationTarget(tx, verificationId);
  switch (event.type) {
    case 'applicantPending':
      return {
        lock,
        // It may come after the decision, which it does not undo.
        apply: async (tx, locked, { at }) => {
          if (canMoveVerification(locked.verification.status, 'in_review'))
            await moveVerification(tx, locked, { to: 'in_review', at, requestId });
        },
      };
    case 'applicantReviewed': {
      const decision = decisionOf(event);
      return {
        lock,
        apply: async (tx, locked, { at }) => void (await decideVerification(tx, locked, decision, { at, requestId })),
      };
    }
    default:
      return undefined;
  }
}

/** @throws ValidationError when a review has no answer that is one */
function decisionOf({ reviewResult }: IdverifyEvent): VerificationDecision {
  const answer = reviewResult?.reviewAnswer;
  if (answer === 'GREEN') return { to: 'verified', verifiedName: null };
  if (answer === 'RED') return { to: 'rejected', rejectionReason: rejectionReasonOf(reviewResult?.rejectLabels ?? []) };
  const loc = ['body', 'reviewResult', 'reviewAnswer'];
  const missing = { loc, msg: 'Field required', type: 'missing' };
  throw new ValidationError([
    answer
      ? { loc, msg: `Input should be ${REVIEW_ANSWERS.map((known) => `'${known}'`).join(' or ')}`, type: 'enum' }
      : missing,
  ]);
}
