import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { redeliver } from '../../db/commands/webhook-delivery.ts';
import { getWebhook } from '../../db/queries/webhook.ts';
import { listDeliveries } from '../../db/queries/webhook-delivery.ts';
import { deliveryResource } from '../../domain/resource/webhook.ts';
import { REDELIVERIES_MAX } from '../../domain/webhook.ts';
import type { ApiDeps } from '../deps.ts';
import { CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { WebhookPath } from '../schemas/webhook.ts';
import { WebhookDeliveryPath, WebhookDeliveryQuery, WebhookDeliveryResponse } from '../schemas/webhook-delivery.ts';

/** A subscription's deliveries (contract §11): the list with their last attempts, and redelivery of one event. */
export const webhookDeliveryRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/v1/webhooks/:webhook_id/deliveries',
      {
        config: { access: { auth: 'api_key', scope: 'read', isLowPriority: true } },
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
        const read = () => deps.readList((db) => listDeliveries(db, orgId, { webhookId, status, page }));
        return answerPage(request, reply, {
          page,
          read,
          show: ({ delivery, attempts }) => deliveryResource(delivery, attempts),
        });
      },
    );

    app.post(
      '/v1/webhooks/:webhook_id/deliveries/:delivery_id/redeliver',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'full',
            isLowPriority: true,
            ...CREATES,
            refusals: ['state_conflict', ...CREATES.refusals],
          },
        },
        schema: {
          tags: ['Webhooks'],
          operationId: 'redeliverWebhook',
          summary: 'Deliver an event again',
          description:
            'The same bytes with the same `webhook-id`, even to a disabled subscription. A pending delivery makes ' +
            'its next attempt now. At most ' +
            `${REDELIVERIES_MAX} times in 24 hours. ` +
            '`attempts` is empty: the list shows them.',
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
  };
