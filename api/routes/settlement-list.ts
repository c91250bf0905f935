/** The organization's settlements, whichever route made them, under two names (contract §1, §6). */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { listSettlementsWithHistory } from '../../db/queries/settlement-history.ts';
import { settlementDetail } from '../../domain/resource/settlement.ts';
import type { ApiDeps } from '../deps.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { SettlementQuery, SettlementResponse } from '../schemas/settlement.ts';

const LISTS = [
  { url: '/v2/settlements', tag: 'Settlement', operationId: 'listSettlements' },
  { url: '/v1/caribbean/settlements', tag: 'Caribbean off-ramp', operationId: 'listCaribbeanSettlements' },
] as const;

export const settlementListRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    for (const { url, tag, operationId } of LISTS) {
      app.get(
        url,
        {
          config: { access: { auth: 'api_key', scope: 'read' } },
          schema: {
            tags: [tag],
            operationId,
            summary: "List the organization's settlements, newest first",
            description: 'Every filter that is given must match.',
            querystring: SettlementQuery,
            response: { 200: pageOf(SettlementResponse, 'One page of settlements.') },
          },
        },
        async (request, reply) => {
          const { limit, offset, after, ...filters } = request.query;
          const page = { limit, offset, after };
          const selection = {
            statuses: filters.status,
            corridor: filters.corridor,
            paymentMethod: filters.payment_method,
            recipientId: filters.recipient_id,
            reference: filters.reference,
            createdFrom: filters.created_from,
            createdTo: filters.created_to,
            metadata: filters.metadata,
          };
          const paged = await listSettlementsWithHistory(deps, principalOf(request).orgId, { selection, page });
          return answerPage(request, reply, { page, paged, show: settlementDetail });
        },
      );
    }
  };
