/** The organization's events, as they were sent to its subscriptions or would have been (contract §11). */
import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { getEventBody, listEventBodies } from '../../db/queries/event-body.ts';
import type { ApiDeps } from '../deps.ts';
import { pageOf, setPageHeaders } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { EventPath, EventQuery, WebhookEvent } from '../schemas/event.ts';

const TAGS = ['Webhooks'];

export const eventRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/v1/events',
      {
        config: { access: { auth: 'api_key', scope: 'read', isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'listEvents',
          summary: 'List the events',
          description:
            'Every event of the organization, whether a subscription wanted it or not. Each one has the bytes of ' +
            'its deliveries.',
          querystring: EventQuery,
          response: { 200: pageOf(WebhookEvent, 'Events, newest first.') },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const { type: types, object_id: objectId, created_from, created_to, ...page } = request.query;
        const selection = { types, objectId, createdFrom: created_from, createdTo: created_to };
        const paged = await deps.readList((db) => listEventBodies(db, orgId, { selection, page }));
        setPageHeaders(request, reply, page, paged);
        return sendJson(reply, [Buffer.from('['), ...withCommas(paged.items), Buffer.from(']')]);
      },
    );

    app.get(
      '/v1/events/:event_id',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'getEvent',
          summary: 'Read an event',
          params: EventPath,
          response: { 200: WebhookEvent },
        },
      },
      async (request, reply) =>
        sendJson(reply, [await getEventBody(deps.db, principalOf(request).orgId, request.params.event_id)]),
    );
  };

const withCommas = (items: readonly Buffer[]): Buffer[] =>
  items.flatMap((item, index) => (index === 0 ? [item] : [Buffer.from(','), item]));

/** Sends stored JSON without reading it, so that its bytes stay the same. */
const sendJson = (reply: FastifyReply, parts: readonly Buffer[]): FastifyReply =>
  reply.type('application/json; charset=utf-8').send(Buffer.concat(parts));
