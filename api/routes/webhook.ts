/** Subscriptions to events, and the deliveries of each (contract §11). */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { z } from 'zod';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  pingWebhook,
  rotateWebhookSecret,
} from '../../db/commands/webhook.ts';
import { redeliver } from '../../db/commands/webhook-delivery.ts';
import { getWebhook, listWebhooks, type WebhookChange } from '../../db/queries/webhook.ts';
import { listDeliveries } from '../../db/queries/webhook-delivery.ts';
import { deliveryResource, webhookResource } from '../../domain/resource/webhook.ts';
import type { ApiDeps } from '../deps.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf, type RouteConfig } from '../route-config.ts';
import { PageQuery } from '../schemas/common.ts';
import {
  CreateWebhookRequest,
  UpdateWebhookRequest,
  WebhookCreatedResponse,
  WebhookDeliveryPath,
  WebhookDeliveryQuery,
  WebhookDeliveryResponse,
  WebhookPath,
  WebhookResponse,
  WebhookRotatedResponse,
} from '../schemas/webhook.ts';
import { requireTarget } from '../webhook-target.ts';

const TAGS = ['Webhooks'];
const READ = { auth: 'api_key', scope: 'read' } as const satisfies RouteConfig;
const MANAGE = { auth: 'api_key', scope: 'full' } as const satisfies RouteConfig;

export const webhookRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    await app.register(subscriptionRoutes(deps));
    await app.register(subscriptionActionRoutes(deps));
    await app.register(deliveryRoutes(deps));
  };

const subscriptionRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/webhooks',
      {
        config: { access: { ...MANAGE, refusals: ['state_conflict'] } },
        schema: {
          tags: TAGS,
          operationId: 'createWebhook',
          summary: 'Subscribe to events',
          body: CreateWebhookRequest,
          response: { 201: WebhookCreatedResponse },
        },
      },
      async (request, reply) => {
        const { url, event_types: eventTypes, description } = request.body;
        await requireTarget(deps, url);
        const draft = { url, eventTypes, description: description ?? null };
        const { webhook, secret } = await createWebhook(deps, principalOf(request).orgId, draft);
        return reply.code(201).send({ ...webhookResource(webhook), secret: shown(secret) });
      },
    );

    app.get(
      '/v1/webhooks',
      {
        config: { access: READ },
        schema: {
          tags: TAGS,
          operationId: 'listWebhooks',
          summary: 'List the subscriptions',
          querystring: PageQuery,
          response: { 200: pageOf(WebhookResponse, "The organization's subscriptions, newest first.") },
        },
      },
      async (request, reply) => {
        const { items, total } = await listWebhooks(deps.db, principalOf(request).orgId, request.query);
        return answerPage(request, reply, request.query, { items: items.map(webhookResource), total });
      },
    );

    app.get(
      '/v1/webhooks/:webhook_id',
      {
        config: { access: READ },
        schema: {
          tags: TAGS,
          operationId: 'getWebhook',
          summary: 'Read a subscription',
          params: WebhookPath,
          response: { 200: WebhookResponse },
        },
      },
      async (request) =>
        webhookResource(await getWebhook(deps.db, principalOf(request).orgId, request.params.webhook_id)),
    );

    app.patch(
      '/v1/webhooks/:webhook_id',
      {
        config: { access: MANAGE },
        schema: {
          tags: TAGS,
          operationId: 'updateWebhook',
          summary: 'Change, disable or enable a subscription',
          description: 'Under the rules of creation. The next attempt of what is pending uses the new URL.',
          params: WebhookPath,
          body: UpdateWebhookRequest,
          response: { 200: WebhookResponse },
        },
      },
      async (request) => {
        const change = changeOf(request.body);
        if (change.url !== undefined) await requireTarget(deps, change.url);
        const changed = await changeWebhook(deps, principalOf(request).orgId, request.params.webhook_id, change);
        return webhookResource(changed);
      },
    );

    app.delete(
      '/v1/webhooks/:webhook_id',
      {
        config: { access: MANAGE },
        schema: {
          tags: TAGS,
          operationId: 'deleteWebhook',
          summary: 'Delete a subscription',
          description:
            'What is pending is canceled. The subscription, its deliveries and its secrets cannot be read any more.',
          params: WebhookPath,
          response: { 204: z.undefined() },
        },
      },
      async (request, reply) => {
        await deleteWebhook(deps, principalOf(request).orgId, request.params.webhook_id);
        return reply.code(204).send();
      },
    );
  };

const subscriptionActionRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhook_id/rotate-secret',
      {
        config: { access: MANAGE },
        schema: {
          tags: TAGS,
          operationId: 'rotateWebhookSecret',
          summary: "Replace a subscription's secret",
          description:
            'Both secrets sign for 24 hours. At most two are active: rotating again within them ends the oldest.',
          params: WebhookPath,
          response: { 200: WebhookRotatedResponse },
        },
      },
      async (request) => {
        const rotated = await rotateWebhookSecret(deps, principalOf(request).orgId, request.params.webhook_id);
        return {
          ...webhookResource(rotated.webhook),
          secret: shown(rotated.secret),
          previous_secret_expires_at: rotated.previousSecretExpiresAt.toISOString(),
        };
      },
    );

    app.post(
      '/v1/webhooks/:webhook_id/test',
      {
        config: { access: MANAGE },
        schema: {
          tags: TAGS,
          operationId: 'sendWebhookPing',
          summary: 'Send a webhook.ping',
          description:
            'To this subscription alone, whatever its event types, even when it is disabled: so an endpoint can be ' +
            'tried before it is enabled.',
          params: WebhookPath,
          response: { 202: WebhookDeliveryResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const delivery = await pingWebhook(deps, orgId, request.params.webhook_id, request.id);
        return reply.code(202).send(deliveryResource(delivery, []));
      },
    );
  };

const deliveryRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/v1/webhooks/:webhook_id/deliveries',
      {
        config: { access: READ },
        schema: {
          tags: TAGS,
          operationId: 'listWebhookDeliveries',
          summary: "List a subscription's deliveries",
          params: WebhookPath,
          querystring: WebhookDeliveryQuery,
          response: { 200: pageOf(WebhookDeliveryResponse, 'Deliveries with their attempts, newest first.') },
        },
      },
      async (request, reply) => {
        const { status, ...page } = request.query;
        const { orgId } = principalOf(request);
        const { webhookId } = await getWebhook(deps.db, orgId, request.params.webhook_id);
        const { items, total } = await listDeliveries(deps.db, orgId, { webhookId, status, page });
        return answerPage(request, reply, page, {
          items: items.map(({ delivery, attempts }) => deliveryResource(delivery, attempts)),
          total,
        });
      },
    );

    app.post(
      '/v1/webhooks/:webhook_id/deliveries/:delivery_id/redeliver',
      {
        config: { access: MANAGE },
        schema: {
          tags: TAGS,
          operationId: 'redeliverWebhook',
          summary: 'Deliver an event again',
          description:
            'The same bytes under the same `webhook-id`, even to a disabled subscription. A pending delivery makes ' +
            'its next attempt now.',
          params: WebhookDeliveryPath,
          response: { 202: WebhookDeliveryResponse },
        },
      },
      async (request, reply) => {
        const { webhook_id: webhookId, delivery_id: deliveryId } = request.params;
        const key = { webhookId, deliveryId };
        const { delivery, attempts } = await redeliver(deps, principalOf(request).orgId, key, request.id);
        return reply.code(202).send(deliveryResource(delivery, attempts));
      },
    );
  };

function changeOf(body: z.output<typeof UpdateWebhookRequest>): WebhookChange {
  return {
    ...(body.url === undefined ? {} : { url: body.url }),
    ...(body.event_types === undefined ? {} : { eventTypes: body.event_types }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.status === undefined ? {} : { status: body.status }),
  };
}

/** A secret as the partner keeps it (Standard Webhooks). */
const shown = (secret: Buffer): string => `whsec_${secret.toString('base64')}`;
