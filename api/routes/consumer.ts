import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { Database } from '../../db/client.ts';
import { createRecipient } from '../../db/commands/recipient.ts';
import { newId } from '../../db/id.ts';
import { insertQuote } from '../../db/queries/quote.ts';
import { listRecipients, type RecipientRow, toRecipient } from '../../db/queries/recipient.ts';
import { CONSUMER_LIST_MAX, consumerContactBinding } from '../../domain/consumer.ts';
import { newQuote } from '../../domain/quote.ts';
import type { Recipient } from '../../domain/recipient.ts';
import { consumerResource } from '../../domain/resource/consumer.ts';
import { quoteResource } from '../../domain/resource/quote.ts';
import { recipientResource } from '../../domain/resource/recipient.ts';
import { verificationDetail } from '../../domain/resource/verification.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { Verification } from '../../domain/verification.ts';
import type { ApiDeps } from '../deps.ts';
import { openApplicant } from '../http/applicant.ts';
import { CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, newestOf } from '../http/pagination.ts';
import { consumerOf } from '../route-config.ts';
import {
  ConsumerRecipientResponse,
  ConsumerVerificationResponse,
  MeResponse,
  QuoteBody,
  QuoteResponse,
  RecipientBody,
} from '../schemas/consumer.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { RecipientPath, recipientDraft } from '../schemas/recipient.ts';
import { SessionHeader } from '../schemas/session.ts';

const TAGS = ['Consumer'];

/** The kind of every consumer's recipient. Partners choose between two kinds; nothing depends on it. */
const KIND = 'contractor';

/**
 * A consumer's own data, recipients and quotes (contract §12). A consumer is an organization of its own, so that the
 * rule of ownership is the same everywhere.
 */
export const consumerRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/consumer/me',
      {
        config: { access: { auth: 'session' } },
        schema: {
          tags: TAGS,
          operationId: 'getConsumer',
          summary: 'Read the signed-in consumer',
          headers: SessionHeader,
          response: { 200: MeResponse },
        },
      },
      async (request) => {
        const { consumer, session } = consumerOf(request);
        const address = deps.sealer.open(consumer.contactSealed, consumerContactBinding(consumer.consumerId));
        return consumerResource(consumer, address.toString(), session);
      },
    );

    app.get(
      '/consumer/recipients',
      {
        config: { access: { auth: 'session', isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'listConsumerRecipients',
          summary: 'List the recipients',
          headers: SessionHeader,
          response: { 200: newestOf(ConsumerRecipientResponse, CONSUMER_LIST_MAX) },
        },
      },
      async (request, reply) => {
        const page = { limit: CONSUMER_LIST_MAX, offset: 0 };
        const { orgId } = consumerOf(request);
        const list = (db: Database) => listRecipients(db, orgId, { selection: {}, page });
        const read = async () => ({ ...(await deps.readList(list)), next: null });
        const show = (row: RecipientRow) => consumerRecipientResource(toRecipient(deps.sealer, row));
        return answerPage(request, reply, { page, read, show });
      },
    );

    app.post(
      '/consumer/recipients',
      {
        config: { access: { auth: 'session', ...CREATES } },
        schema: {
          tags: TAGS,
          operationId: 'createConsumerRecipient',
          summary: 'Register a recipient',
          headers: OptionalIdempotencyKey.extend(SessionHeader.shape),
          body: RecipientBody,
          response: { 201: ConsumerRecipientResponse },
        },
      },
      async (request, reply) => {
        const draft = recipientDraft({ ...request.body, org_id: undefined, kind: KIND, metadata: undefined });
        const { orgId } = consumerOf(request);
        const creation = { keyed: keyedRequest(request, orgId), status: 201, show: consumerRecipientResource };
        return sendAnswer(reply, await createRecipient(deps, orgId, draft, creation));
      },
    );

    app.post(
      '/consumer/recipients/:recipient_id/verify',
      {
        config: {
          access: {
            auth: 'session',
            remote: 'local_sandbox_only',
            refusals: ['not_found', 'state_conflict', 'quota_exceeded'],
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'verifyConsumerRecipient',
          summary: 'Have a recipient verified',
          description:
            "Opens a verification, or continues the open one. In the local sandbox the recipient's name decides it. " +
            'A transfer of 1 000.00 or more waits for it.',
          headers: SessionHeader,
          params: RecipientPath,
          response: { 201: ConsumerVerificationResponse },
        },
      },
      async (request, reply) => {
        const opening = {
          orgId: consumerOf(request).orgId,
          recipientId: request.params.recipient_id,
          requestId: request.id,
          levelName: undefined,
          givenContact: { email: null, phone: null, country: null },
          keyed: undefined,
        };
        const answer = await openApplicant(deps, opening, async () => consumerVerification);
        request.subjectId = answer.resourceId;
        return sendAnswer(reply, answer);
      },
    );

    app.post(
      '/consumer/quote',
      {
        config: { access: { auth: 'session', remote: 'local_sandbox_only' } },
        schema: {
          tags: TAGS,
          operationId: 'createQuote',
          summary: 'Quote a transfer, for display only',
          headers: SessionHeader,
          body: QuoteBody,
          response: { 200: QuoteResponse },
        },
      },
      async (request) => {
        const quote = newQuote(newId(), consumerOf(request).orgId, request.body, deps.now());
        await insertQuote(deps.db, quote);
        return quoteResource(quote, request.body, environmentName(deps.runtime));
      },
    );
  };

function consumerRecipientResource(recipient: Recipient) {
  const { org_id: _orgId, kind: _kind, metadata: _metadata, ...resource } = recipientResource(recipient);
  return resource;
}

function consumerVerification(verification: Verification) {
  const { org_id: _org, ...shown } = verificationDetail(verification);
  return shown;
}
