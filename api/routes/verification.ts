/**
 * Verification of recipients (contract §8). In the local sandbox the caller decides manually. Elsewhere the identity
 * provider decides, and its decisions arrive only through its signed webhook.
 */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { z } from 'zod';
import { decideVerification, openManualVerification } from '../../db/commands/verification.ts';
import { findVerification, readVerifications } from '../../db/queries/verification.ts';
import { DomainError } from '../../domain/error.ts';
import { DEFAULT_LEVEL } from '../../domain/idverify.ts';
import { verificationDetail } from '../../domain/resource/verification.ts';
import type { VerificationDecision } from '../../domain/verification.ts';
import type { ApiDeps } from '../deps.ts';
import { openApplicant, withToken } from '../http/applicant.ts';
import { ACCEPTED_HEADERS, CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { refusalByRules } from '../http/validation.ts';
import { principalOf } from '../route-config.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import {
  CompleteVerificationRequest,
  CreateIdverifyApplicantRequest,
  createApplicantRules,
  IdverifyApplicantResponse,
  StartVerificationRequest,
  VerificationPath,
  VerificationRecipientPath,
  VerificationResponse,
  VerificationStatusResponse,
} from '../schemas/verification.ts';

const TAGS = ['Verification'];

export const verificationRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    // A partner that could name any level could choose a weaker check than the operator wants.
    const levelNames = new Set([...Object.values(DEFAULT_LEVEL), ...deps.config.idverifyLevelNames]);

    app.post(
      '/v1/kyc/verify',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'compliance',
            remote: 'local_sandbox_only',
            refusals: ['not_found', 'state_conflict', ...CREATES.refusals],
            headers: ACCEPTED_HEADERS,
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'startVerification',
          summary: 'Open a verification that is decided manually',
          description:
            'A manual mock for the local sandbox; elsewhere use `/v1/kyc/idverify/applicant`. A recipient has at ' +
            'most one open verification of each type. It expires after 30 days.',
          headers: OptionalIdempotencyKey,
          body: StartVerificationRequest,
          response: { 201: VerificationResponse },
        },
      },
      async (request, reply) => {
        const { body } = request;
        const { orgId } = principalOf(request);
        const answer = await openManualVerification(
          deps,
          {
            orgId,
            recipientId: body.recipient_id,
            requestId: request.id,
            verificationType: body.verification_type,
            documentType: body.document_type ?? null,
            documentCountry: body.document_country ?? null,
          },
          { keyed: keyedRequest(request, orgId), status: 201, show: verificationDetail },
        ).catch(naming('recipient_id'));
        request.subjectId = answer.resourceId;
        return sendAnswer(reply, answer, `/v1/kyc/${answer.resourceId}`);
      },
    );

    app.post(
      '/v1/kyc/:verification_id/complete',
      {
        config: {
          access: { auth: 'api_key', scope: 'compliance', remote: 'local_sandbox_only', refusals: ['state_conflict'] },
        },
        schema: {
          tags: TAGS,
          operationId: 'completeVerification',
          summary: 'Decide a verification manually',
          description:
            'Local sandbox only. Repeating the decision gives the same answer; another decision is a conflict.',
          params: VerificationPath,
          body: CompleteVerificationRequest,
          response: { 200: VerificationResponse },
        },
      },
      async (request) => {
        const { orgId } = principalOf(request);
        const decision = { ...decisionOf(request.body), requestId: request.id };
        return verificationDetail(await decideVerification(deps, orgId, request.params.verification_id, decision));
      },
    );

    app.get(
      '/v1/kyc/:verification_id',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'getVerification',
          summary: 'Read a verification',
          params: VerificationPath,
          response: { 200: VerificationResponse },
        },
      },
      async (request) => {
        const { orgId } = principalOf(request);
        const verification = await findVerification(deps, orgId, request.params.verification_id);
        if (!verification) throw new DomainError('not_found');
        return verificationDetail(verification);
      },
    );

    app.get(
      '/v1/kyc/status/:recipient_id',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'getVerificationStatus',
          summary: "Read a recipient's verifications",
          params: VerificationRecipientPath,
          response: { 200: VerificationStatusResponse },
        },
      },
      async (request) => {
        const { recipient, verifications } = await readVerifications(
          deps,
          principalOf(request).orgId,
          request.params.recipient_id,
        );
        const shown = verifications.map(verificationDetail);
        return {
          recipient_id: recipient.recipientId,
          verification_status: recipient.verificationStatus,
          latest: shown[0] ?? null,
          verifications: shown,
        };
      },
    );

    app.post(
      '/v1/kyc/idverify/applicant',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'compliance',
            remote: 'provider_not_configured',
            refusals: ['not_found', 'state_conflict', ...CREATES.refusals],
            headers: CREATES.headers,
            rules: createApplicantRules(levelNames),
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'createIdverifyApplicant',
          summary: 'Have the identity provider verify a recipient',
          description:
            'Opens a verification, or continues the open one, and answers with a short-lived token for the ' +
            "provider's widget. It is safe to repeat. The provider's confirmed name and document country are neither " +
            'fetched nor reconciled.',
          headers: OptionalIdempotencyKey,
          body: CreateIdverifyApplicantRequest,
          response: { 201: IdverifyApplicantResponse },
        },
      },
      async (request, reply) => {
        const { body } = request;
        const { orgId } = principalOf(request);
        const opening = {
          orgId,
          recipientId: body.recipient_id,
          requestId: request.id,
          refusal: refusalByRules(request),
          levelName: body.level_name,
          givenContact: { email: body.email ?? null, phone: body.phone ?? null, country: body.country ?? null },
          keyed: keyedRequest(request, orgId),
        };
        const answer = await openApplicant(deps, opening, withToken).catch(naming('recipient_id'));
        request.subjectId = answer.resourceId;
        return sendAnswer(reply, answer);
      },
    );
  };

/** For a command that takes an id from this field of the body: its `not_found` names the field. */
const naming =
  (field: string) =>
  (error: unknown): never => {
    throw error instanceof DomainError && error.code === 'not_found' ? new DomainError('not_found', { field }) : error;
  };

const decisionOf = (body: z.output<typeof CompleteVerificationRequest>): VerificationDecision => ({
  to: body.status,
  verifiedName: body.verified_name ?? null,
  rejectionReason: body.rejection_reason ?? null,
});
