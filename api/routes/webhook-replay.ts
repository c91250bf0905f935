import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { startReplay } from '../../db/commands/webhook-replay.ts';
import { getReplay } from '../../db/queries/webhook-replay.ts';
import { replayResource } from '../../domain/resource/webhook.ts';
import type { ApiDeps } from '../deps.ts';
import { ACCEPTED_HEADERS, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { principalOf } from '../route-config.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { WebhookPath } from '../schemas/webhook.ts';
import {
  REPLAYED_BY_DEFAULT,
  ReplayWebhookRequest,
  StartedReplayResponse,
  WebhookReplayPath,
  WebhookReplayResponse,
} from '../schemas/webhook-replay.ts';

/** Replays (contract §11): what a subscription missed is sent again, in steps by a worker. */
export const webhookReplayRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhook_id/replay',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'full',
            isLowPriority: true,
            refusals: ['idempotency_key_reused', 'state_conflict'],
            headers: ACCEPTED_HEADERS,
          },
        },
        schema: {
          tags: ['Webhooks'],
          operationId: 'replayWebhook',
          summary: 'Deliver again what a subscription missed',
          description:
            'Sends again what matches, oldest first, even to a disabled subscription. It runs in the background: ' +
            '`Location` shows how far it is. One replay of a subscription runs at a time.',
          headers: OptionalIdempotencyKey,
          params: WebhookPath,
          body: ReplayWebhookRequest,
          response: { 202: StartedReplayResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const { webhook_id: webhookId } = request.params;
        const { since, until = null, statuses = REPLAYED_BY_DEFAULT, event_types: eventTypes = null } = request.body;
        const wanted = { webhookId, selection: { since, until, statuses, eventTypes }, requestId: request.id };
        const answer = await startReplay(deps, orgId, wanted, {
          keyed: keyedRequest(request, orgId),
          status: 202,
          show: (replayId) => ({ replay_id: replayId }),
        });
        return sendAnswer(reply, answer, `/v1/webhooks/${webhookId}/replays/${answer.resourceId}`);
      },
    );

    app.get(
      '/v1/webhooks/:webhook_id/replays/:replay_id',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: ['Webhooks'],
          operationId: 'getWebhookReplay',
          summary: 'Read how far a replay is',
          params: WebhookReplayPath,
          response: { 200: WebhookReplayResponse },
        },
      },
      async (request) => {
        const { webhook_id: webhookId, replay_id: replayId } = request.params;
        return replayResource(await getReplay(deps.db, principalOf(request).orgId, { webhookId, replayId }));
      },
    );
  };
