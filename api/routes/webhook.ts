/** Subscriptions to events (contract §11). */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { z } from 'zod';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  sendTestEvent,
} from '../../db/commands/webhook.ts';
import { getWebhook, listWebhooks } from '../../db/queries/webhook.ts';
import { ValidationError } from '../../domain/error.ts';
import { eventExample } from '../../domain/resource/event-example.ts';
import { deliveryResource, webhookResource } from '../../domain/resource/webhook.ts';
import { environmentName } from '../../domain/runtime.ts';
import { EARLIER_SECRETS_MAX, NO_ATTEMPTS } from '../../domain/webhook.ts';
import { admitsAddress, isLoopbackHost, type TargetRules, targetHost } from '../../domain/webhook-target.ts';
import type { ApiDeps } from '../deps.ts';
import { CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { refusalByRules } from '../http/validation.ts';
import { principalOf, type RouteConfig } from '../route-config.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { PageQuery } from '../schemas/page.ts';
import {
  CreateWebhookRequest,
  createWebhookRules,
  TestWebhookRequest,
  UpdateWebhookRequest,
  updateWebhookRules,
  WebhookCreatedResponse,
  WebhookPath,
  WebhookResponse,
  WebhookRotatedResponse,
  webhookChange,
} from '../schemas/webhook.ts';
import { WebhookDeliveryResponse } from '../schemas/webhook-delivery.ts';

const TAGS = ['Webhooks'];
const READ = { auth: 'api_key', scope: 'read' } as const satisfies RouteConfig;
const MANAGE = { auth: 'api_key', scope: 'full' } as const satisfies RouteConfig;
const LOOKUP_TIMEOUT_MS = 2_000;

export const webhookRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const targetRules: TargetRules = { allowLocal: deps.config.webhookAllowLocalTargets };
    app.post(
      '/v1/webhooks',
      {
        config: {
          access: { ...MANAGE, ...CREATES, rules: createWebhookRules(targetRules) },
        },
        schema: {
          tags: TAGS,
          operationId: 'createWebhook',
          summary: 'Subscribe to events',
          headers: OptionalIdempotencyKey,
          body: CreateWebhookRequest,
          response: { 201: WebhookCreatedResponse },
        },
      },
      async (request, reply) => {
        const { url, event_types: eventTypes, description } = request.body;
        const { orgId } = principalOf(request);
        const draft = { url, eventTypes, description: description ?? null };
        const answer = await createWebhook(deps, orgId, draft, {
          keyed: keyedRequest(request, orgId),
          status: 201,
          refusal: refusalByRules(request) ?? (await refusalOfHost(deps, url, targetRules)),
          show: ({ webhook, secret }) => ({ ...webhookResource(webhook), secret: encodedSecret(secret) }),
        });
        return sendAnswer(reply, answer);
      },
    );

    app.get(
      '/v1/webhooks',
      {
        config: { access: { ...READ, isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'listWebhooks',
          summary: 'List the subscriptions',
          querystring: PageQuery,
          response: { 200: pageOf(WebhookResponse, "The organization's subscriptions, newest first.") },
        },
      },
      async (request, reply) => {
        const read = () => listWebhooks(deps.db, principalOf(request).orgId, request.query);
        return answerPage(request, reply, { page: request.query, read, show: webhookResource });
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
        config: {
          access: {
            ...MANAGE,
            refusals: ['state_conflict'],
            rules: updateWebhookRules(targetRules),
            // A new URL's host is looked up.
            isLowPriority: ({ body }) => UpdateWebhookRequest.parse(body).url === undefined,
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'updateWebhook',
          summary: 'Change, disable or enable a subscription',
          description: 'The rules of creation apply. The next attempt of a pending delivery uses the new URL.',
          params: WebhookPath,
          body: UpdateWebhookRequest,
          response: { 200: WebhookResponse },
        },
      },
      async (request) => {
        const change = webhookChange(request.body);
        const refusal = refusalByRules(request) ?? (await refusalOfHost(deps, change.url, targetRules));
        if (refusal) throw refusal;
        const { orgId } = principalOf(request);
        const changed = await changeWebhook(deps, orgId, request.params.webhook_id, change, request.id);
        return webhookResource(changed);
      },
    );

    app.delete(
      '/v1/webhooks/:webhook_id',
      {
        config: { access: { ...MANAGE, isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'deleteWebhook',
          summary: 'Delete a subscription',
          description:
            'Pending deliveries are canceled. The subscription, its deliveries and its secrets can no longer be read.',
          params: WebhookPath,
          response: { 204: z.undefined() },
        },
      },
      async (request, reply) => {
        await deleteWebhook(deps, principalOf(request).orgId, request.params.webhook_id, request.id);
        return reply.code(204).send();
      },
    );
  };

export const webhookActionRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhook_id/rotate-secret',
      {
        config: {
          access: {
            ...MANAGE,
            refusals: ['idempotency_key_reused', 'state_conflict'],
            headers: CREATES.headers,
            isLowPriority: true,
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'rotateWebhookSecret',
          summary: "Replace a subscription's secret",
          description:
            'Each earlier secret signs for 24 hours from its own rotation, at most ' +
            `${EARLIER_SECRETS_MAX} of them at once.`,
          params: WebhookPath,
          headers: OptionalIdempotencyKey,
          response: { 200: WebhookRotatedResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const answer = await rotateWebhookSecret(deps, orgId, request.params.webhook_id, {
          keyed: keyedRequest(request, orgId),
          status: 200,
          show: ({ webhook, secret, previousSecretExpiresAt }) => ({
            ...webhookResource(webhook),
            secret: encodedSecret(secret),
            previous_secret_expires_at: previousSecretExpiresAt.toISOString(),
          }),
        });
        return sendAnswer(reply, answer);
      },
    );

    app.post(
      '/v1/webhooks/:webhook_id/test',
      {
        config: { access: { ...MANAGE, refusals: ['state_conflict'], isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'sendTestEvent',
          summary: 'Send a test event',
          description:
            'Marked `test: true`, and sent only to this subscription, with any event types, and even if it is disabled. ' +
            'So an endpoint can be tested before it is enabled. The list of events shows it too.',
          params: WebhookPath,
          body: TestWebhookRequest,
          response: { 202: WebhookDeliveryResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const type = request.body?.event_type ?? 'webhook.ping';
        const owner = { orgId, environment: environmentName(deps.runtime), now: deps.now() };
        const test = type === 'webhook.ping' ? { type } : { type, data: eventExample(type, owner) };
        const delivery = await sendTestEvent(deps, orgId, request.params.webhook_id, test, request.id);
        return reply.code(202).send(deliveryResource(delivery, NO_ATTEMPTS));
      },
    );
  };

/** A secret in the form that partners store (Standard Webhooks). */
const encodedSecret = (secret: Buffer): string => `whsec_${secret.toString('base64')}`;

/**
 * Why a subscription may not have a URL with this host; undefined if it may. The name is resolved so that the partner
 * learns here that it is private. One that does not resolve is accepted: the addresses are checked again at each
 * connection.
 */
async function refusalOfHost(
  deps: ApiDeps,
  url: string | undefined,
  rules: TargetRules,
): Promise<ValidationError | undefined> {
  if (url === undefined) return undefined;
  const host = targetHost(new URL(url));
  if (rules.allowLocal && isLoopbackHost(host)) return undefined;
  const unknown: readonly string[] = [];
  const waiting = new AbortController();
  const timeout = delay(LOOKUP_TIMEOUT_MS, unknown, { signal: waiting.signal }).catch(() => unknown);
  const addresses = await Promise.race([deps.resolveHost(host).catch(() => unknown), timeout]);
  waiting.abort();
  return addresses.every((address) => admitsAddress(address, rules))
    ? undefined
    : new ValidationError([{ field: 'url', rule: 'must name a host on the public internet' }]);
}
