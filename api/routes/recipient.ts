/** Recipients of payouts (contract §4). They are deactivated, never deleted: settlements keep referring to them. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { z } from 'zod';
import {
  changeRecipient,
  deactivateRecipient,
  getRecipient,
  insertRecipient,
  listRecipients,
  lockRecipient,
} from '../../db/queries/recipient.ts';
import { DomainError, ValidationError, type ValidationFault } from '../../domain/error.ts';
import {
  changeFaults,
  detailsFaults,
  type Recipient,
  type RecipientChange,
  type RecipientDraft,
} from '../../domain/recipient.ts';
import { recipientResource } from '../../domain/resource/recipient.ts';
import type { ApiDeps } from '../deps.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { PageQuery } from '../schemas/common.ts';
import {
  CreateRecipientRequest,
  RecipientPath,
  RecipientResponse,
  UpdateRecipientRequest,
} from '../schemas/recipient.ts';

const TAGS = ['Recipients'];

export const recipientRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/recipients',
      {
        config: { access: { auth: 'api_key', scope: 'recipients' } },
        schema: {
          tags: TAGS,
          operationId: 'createRecipient',
          summary: 'Register a recipient',
          body: CreateRecipientRequest,
          response: { 201: RecipientResponse },
        },
      },
      async (request, reply) => {
        const draft = draftOf(request.body);
        refuseFaults(detailsFaults(draft.country, draft));
        const recipient = await insertRecipient(deps.db, principalOf(request).orgId, draft, {
          sealer: deps.sealer,
          at: deps.now(),
        });
        return reply.code(201).send(recipientResource(recipient));
      },
    );

    app.get(
      '/v1/recipients',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'listRecipients',
          summary: 'List the recipients',
          querystring: PageQuery,
          response: {
            200: pageOf(RecipientResponse, "The organization's recipients, inactive ones included, newest first."),
          },
        },
      },
      async (request, reply) => {
        const { items, total } = await listRecipients(deps.db, principalOf(request).orgId, request.query);
        return answerPage(request, reply, request.query, { items: items.map(recipientResource), total });
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
        recipientResource(await getRecipient(deps.db, principalOf(request).orgId, request.params.recipient_id)),
    );

    app.put(
      '/v1/recipients/:recipient_id',
      {
        config: { access: { auth: 'api_key', scope: 'recipients', refusals: ['state_conflict'] } },
        schema: {
          tags: TAGS,
          operationId: 'updateRecipient',
          summary: 'Change a recipient',
          description: 'Only fields that are present change. Another name makes a verified recipient `unverified`.',
          params: RecipientPath,
          body: UpdateRecipientRequest,
          response: { 200: RecipientResponse },
        },
      },
      async (request) => {
        const change = changeOf(request.body);
        const { orgId } = principalOf(request);
        const changed = await deps.db.transaction(async (tx) => {
          const recipient = await lockRecipient(tx, orgId, request.params.recipient_id);
          refuseFaults(changeFaults(recipient, change));
          refuseInactive(recipient);
          return await changeRecipient(tx, recipient, change, { sealer: deps.sealer, at: deps.now() });
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
            'The record stays for audit and for its settlements. Deactivating an inactive recipient again changes nothing.',
          params: RecipientPath,
          response: { 200: RecipientResponse },
        },
      },
      async (request) => {
        const { orgId } = principalOf(request);
        const recipient = await deps.db.transaction(async (tx) => {
          const found = await lockRecipient(tx, orgId, request.params.recipient_id);
          return await deactivateRecipient(tx, found, { at: deps.now(), requestId: request.id });
        });
        deps.dispatcher.nudge();
        return recipientResource(recipient);
      },
    );
  };

export function draftOf(body: z.output<typeof CreateRecipientRequest>): RecipientDraft {
  return {
    kind: body.kind,
    entityType: body.entity_type,
    name: body.name,
    country: body.country,
    email: body.email ?? null,
    phone: body.phone ?? null,
    bankDetails: body.bank_details ?? null,
    mobileDetails: body.mobile_details ?? null,
    metadata: body.metadata ?? {},
  };
}

function changeOf(body: z.output<typeof UpdateRecipientRequest>): RecipientChange {
  return {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.email === undefined ? {} : { email: body.email }),
    ...(body.phone === undefined ? {} : { phone: body.phone }),
    ...(body.bank_details === undefined ? {} : { bankDetails: body.bank_details }),
    ...(body.mobile_details === undefined ? {} : { mobileDetails: body.mobile_details }),
    ...(body.metadata === undefined ? {} : { metadata: body.metadata ?? {} }),
  };
}

/** @throws ValidationError when there is a fault */
export function refuseFaults(faults: readonly ValidationFault[]): void {
  if (faults.length > 0) throw new ValidationError(faults);
}

function refuseInactive(recipient: Recipient): void {
  if (!recipient.isActive)
    throw new DomainError(
      'state_conflict',
      { current_state: 'inactive' },
      'The recipient is inactive and takes no change.',
    );
}
