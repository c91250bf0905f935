/** Recipients of payouts (contract §4). They are deactivated and never deleted, because settlements refer to them. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { changeRecipient, createRecipient, deactivateRecipient } from '../../db/commands/recipient.ts';
import { getRecipient, listRecipients, type RecipientRow, toRecipient } from '../../db/queries/recipient.ts';
import { recipientResource } from '../../domain/resource/recipient.ts';
import type { ApiDeps } from '../deps.ts';
import { CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import {
  CreateRecipientRequest,
  RecipientPath,
  RecipientQuery,
  RecipientResponse,
  recipientChange,
  recipientDraft,
  UpdateRecipientRequest,
} from '../schemas/recipient.ts';

const TAGS = ['Recipients'];

export const recipientRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/recipients',
      {
        config: { access: { auth: 'api_key', scope: 'recipients', ...CREATES } },
        schema: {
          tags: TAGS,
          operationId: 'createRecipient',
          summary: 'Register a recipient',
          headers: OptionalIdempotencyKey,
          body: CreateRecipientRequest,
          response: { 201: RecipientResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const creation = { keyed: keyedRequest(request, orgId), status: 201, show: recipientResource };
        return sendAnswer(reply, await createRecipient(deps, orgId, recipientDraft(request.body), creation));
      },
    );

    app.get(
      '/v1/recipients',
      {
        config: { access: { auth: 'api_key', scope: 'read', isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'listRecipients',
          summary: 'List the recipients',
          querystring: RecipientQuery,
          response: {
            200: pageOf(RecipientResponse, "The organization's recipients, including inactive ones, newest first."),
          },
        },
      },
      async (request, reply) => {
        const {
          is_active: isActive,
          verification_status: verificationStatus,
          country,
          metadata,
          ...page
        } = request.query;
        const selection = { isActive, verificationStatus, country, metadata };
        const { orgId } = principalOf(request);
        const read = () => deps.readList((db) => listRecipients(db, orgId, { selection, page }));
        const show = (row: RecipientRow) => recipientResource(toRecipient(deps.sealer, row));
        return answerPage(request, reply, { page, read, show });
      },
    );

    app.get(
      '/v1/recipients/:recipient_id',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'getRecipient',
          summary: 'Read a recipient',
          params: RecipientPath,
          response: { 200: RecipientResponse },
        },
      },
      async (request) =>
        recipientResource(await getRecipient(deps, principalOf(request).orgId, request.params.recipient_id)),
    );

    app.put(
      '/v1/recipients/:recipient_id',
      {
        config: { access: { auth: 'api_key', scope: 'recipients', refusals: ['state_conflict'] } },
        schema: {
          tags: TAGS,
          operationId: 'updateRecipient',
          summary: 'Change a recipient',
          description: 'Only the fields that are present change. A new name makes a verified recipient `unverified`.',
          params: RecipientPath,
          body: UpdateRecipientRequest,
          response: { 200: RecipientResponse },
        },
      },
      async (request) => {
        const change = recipientChange(request.body);
        const { orgId } = principalOf(request);
        const changed = await changeRecipient(deps, orgId, request.params.recipient_id, {
          change,
          requestId: request.id,
        });
        return recipientResource(changed);
      },
    );

    app.delete(
      '/v1/recipients/:recipient_id',
      {
        config: { access: { auth: 'api_key', scope: 'recipients' } },
        schema: {
          tags: TAGS,
          operationId: 'deactivateRecipient',
          summary: 'Deactivate a recipient',
          description:
            'The record is kept for audit and for its settlements. Deactivating an inactive recipient changes nothing.',
          params: RecipientPath,
          response: { 200: RecipientResponse },
        },
      },
      async (request) => {
        const { orgId } = principalOf(request);
        const recipient = await deactivateRecipient(deps, orgId, request.params.recipient_id, request.id);
        return recipientResource(recipient);
      },
    );
  };
