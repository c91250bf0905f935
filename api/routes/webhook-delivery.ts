import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { redeliver, replayWebhook } from '../../db/commands/webhook-delivery.ts';
import { getWebhook } from '../../db/queries/webhook.ts';
import { listDeliveries } from '../../db/queries/webhook-delivery.ts';
import { deliveryResource } from '../../domain/resource/webhook.ts';
import { REPLAY_MAX } from '../../domain/webhook.ts';
import type { ApiDeps } from '../deps.ts';
import { CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { WebhookPath } from '../schemas/webhook.ts';
import {
  REPLAYED_BY_DEFAULT,
  ReplayWebhookRequest,
  WebhookDeliveryPath,
  WebhookDeliveryQuery,
  WebhookDeliveryResponse,
  WebhookReplayResponse,
} from '../schemas/webhook-delivery.ts';

/**
 * A subscription's deliveries (contract §11): the list with their last attempts, and redelivery of one event or of everything
 * that was missed.
 */
export const webhookDeliveryRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/v1/webhooks/:webhook_id/deliveries',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: ['Webhooks'],
          operationId: 'listWebhookDeliveries',
          summary: "List a subscription's deliveries",
          params: WebhookPath,
          querystring: WebhookDeliveryQuery,
          response: { 200: pageOf(WebhookDeliveryResponse, 'Deliveries with their last attempts, newest first.') },
        },
      },
      async (request, reply) => {
        const { status, ...page } = request.query;
        const { orgId } = principalOf(request);
        const { webhookId } = await getWebhook(deps.db, orgId, request.params.webhook_id);
        const paged = await listDeliveries(deps.db, orgId, { webhookId, status, page });
        return answerPage(request, reply, {
          page,
          paged,
          show: ({ delivery, attempts }) => deliveryResource(delivery, attempts),
        });
      },
    );

    app.post(
      '/v1/webhooks/:webhook_id/deliveries/:delivery_id/redeliver',
      {
        config: { access: { auth: 'api_key', scope: 'full', ...CREATES } },
        schema: {
          tags: ['Webhooks'],
          operationId: 'redeliverWebhook',
          summary: 'Deliver an event again',
          description:
            'The same bytes with the same `webhook-id`, even to a disabled subscription. A pending delivery makes ' +
            'its next attempt now. `attempts` is empty: the list shows them.',
          headers: OptionalIdempotencyKey,
          params: WebhookDeliveryPath,
          response: { 202: WebhookDeliveryResponse },
        },
      },
      async (request, reply) => {
        const { webhook_id: webhookId, delivery_id: deliveryId } = request.params;
        const { orgId } = principalOf(request);
        const wanted = { webhookId, deliveryId, requestId: request.id };
        const answer = await redeliver(deps, orgId, wanted, {
          keyed: keyedRequest(request, orgId),
          status: 202,
          show: ({ delivery, attempts }) => deliveryResource(delivery, attempts),
        });
        return sendAnswer(reply, answer);
      },
    );

    app.post(
      '/v1/webhooks/:webhook_id/replay',
      {
        config: { access: { auth: 'api_key', scope: 'full', ...CREATES } },
        schema: {
          tags: ['Webhooks'],
          operationId: 'replayWebhook',
          summary: 'Deliver again what a subscription missed',
          description:
            `Sends the oldest ${REPLAY_MAX} deliveries that match, oldest first. When \`deliveries\` is ${REPLAY_MAX}, ` +
            'send another request once they have been sent.',
          headers: OptionalIdempotencyKey,
          params: WebhookPath,
          body: ReplayWebhookRequest,
          response: { 202: WebhookReplayResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const { since, until, statuses = REPLAYED_BY_DEFAULT, event_types: eventTypes } = request.body;
        const selection = { since, until, statuses, eventTypes };
        const wanted = { webhookId: request.params.webhook_id, selection, requestId: request.id };
        const answer = await replayWebhook(deps, orgId, wanted, {
          keyed: keyedRequest(request, orgId),
          status: 202,
          show: ({ replayId, deliveries }) => ({ replay_id: replayId, deliveries }),
        });
        return sendAnswer(reply, answer);
      },
    );
  };
