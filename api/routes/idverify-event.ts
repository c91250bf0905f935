/** The identity provider's webhook (contract §9): events about verifications, as Sumsub sends them. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type EventClaim, NO_CLAIM } from '../../db/commands/provider-event.ts';
import { DomainError } from '../../domain/error.ts';
import { REVIEW_ANSWERS, rejectionReasonOf } from '../../domain/idverify.ts';
import { isLiveMode, type RuntimeEnvironment } from '../../domain/runtime.ts';
import type { VerificationDecision } from '../../domain/verification.ts';
import type { ApiDeps } from '../deps.ts';
import { isKnownType, readKnownEvent, receiveEvent } from '../http/provider-event.ts';
import { readDigest, singleHeader } from '../http/provider-signature.ts';
import { InvalidRequestError, missingField } from '../http/request-fault.ts';
import { verifyThenParse } from '../plugins/signed-body.ts';
import {
  DIGEST_ALGORITHM,
  IDVERIFY_TYPES,
  IdverifyEvent,
  IdverifySignature,
  KnownIdverifyEvent,
} from '../schemas/idverify-event.ts';
import { ProviderEventReceipt } from '../schemas/provider-event.ts';

/** Register it after `acceptSignedBodies`: the signature covers the raw bytes. */
export const idverifyEventRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/webhooks/idverify',
      {
        config: { access: { auth: 'signature', refusals: ['provider_event_conflict'] } },
        ...verifyThenParse(({ raw }) => {
          if (singleHeader(raw, 'x-payload-digest-alg') !== DIGEST_ALGORITHM)
            throw new DomainError('signature_invalid');
          return readDigest(singleHeader(raw, 'x-payload-digest'));
        }, deps.config.idverifyWebhookSecrets),
        schema: {
          tags: ['Provider webhooks'],
          operationId: 'receiveIdverifyEvent',
          summary: "Receive an identity provider's event",
          description:
            'Authenticated by `X-Payload-Digest`. The decision is committed before the answer. Only the first decision counts: later ' +
            'ones are stored and change nothing.',
          headers: IdverifySignature,
          body: IdverifyEvent,
          response: { 200: ProviderEventReceipt },
        },
      },
      async (request) => {
        const event = request.body;
        const named = { provider: 'idverify', eventId: event.correlationId, type: event.type } as const;
        return await receiveEvent(deps, request, named, claimOf(event, deps.runtime));
      },
    );
  };

/** What an event says about the verification that it names. @throws InvalidRequestError */
function claimOf(event: IdverifyEvent, runtime: RuntimeEnvironment): EventClaim {
  if (!isKnownType(IDVERIFY_TYPES, event.type)) return NO_CLAIM;
  const known = readKnownEvent(KnownIdverifyEvent, event);
  // A decision of the provider's sandbox is not applied to a person in production.
  return known.sandboxMode === true && isLiveMode(runtime) ? NO_CLAIM : knownClaim(known);
}

function knownClaim(event: KnownIdverifyEvent): EventClaim {
  const verificationId = event.externalUserId;
  if (verificationId === undefined) return NO_CLAIM;
  const named = { about: 'verification', verificationId, applicantId: event.applicantId } as const;
  switch (event.type) {
    case 'applicantPending':
      return { ...named, move: { to: 'in_review' } };
    case 'applicantReviewed':
      return { ...named, move: decisionOf(event) };
  }
}

/** @throws InvalidRequestError when the answer of a review is missing or unknown */
function decisionOf({ reviewResult }: KnownIdverifyEvent): { readonly to: 'in_review' } | VerificationDecision {
  const answer = reviewResult?.reviewAnswer;
  // The provider asks the applicant for better documents, and will review again.
  if (answer === 'RED' && reviewResult?.reviewRejectType === 'RETRY') return { to: 'in_review' };
  if (answer === 'GREEN') return { to: 'verified', verifiedName: null, rejectionReason: null };
  if (answer === 'RED') {
    const rejectionReason = rejectionReasonOf(reviewResult?.rejectLabels ?? []);
    return { to: 'rejected', verifiedName: null, rejectionReason };
  }
  const loc = ['body', 'reviewResult', 'reviewAnswer'];
  throw new InvalidRequestError([
    answer
      ? { loc, msg: `Input should be ${REVIEW_ANSWERS.map((known) => `'${known}'`).join(' or ')}`, type: 'enum' }
      : missingField(loc),
  ]);
}
