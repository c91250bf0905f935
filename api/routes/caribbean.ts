/** The legacy Caribbean off-ramp (contract §6): it starts internally funded settlements, and reads all settlements. */
import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { acceptSettlement } from '../../db/commands/acceptance.ts';
import { getSettlementWithHistory } from '../../db/queries/settlement-history.ts';
import { settlementDetail, settlementResource } from '../../domain/resource/settlement.ts';
import type { ApiDeps } from '../deps.ts';
import { ACCEPTS_SETTLEMENT, settlementCommand } from '../http/acceptance.ts';
import { sendAnswer } from '../http/idempotent-answer.ts';
import { READ_HEADERS, sendRead, UNCHANGED } from '../http/pending-read.ts';
import { principalOf } from '../route-config.ts';
import { Conditions } from '../schemas/common.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { CaribbeanOfframpResponse, SettlementPath, SettlementResponse } from '../schemas/settlement.ts';
import { CaribbeanOfframpRequest } from '../schemas/settlement-command.ts';

export const caribbeanRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/caribbean/settle',
      {
        config: { access: { auth: 'api_key', scope: 'settle', ...ACCEPTS_SETTLEMENT } },
        schema: {
          tags: ['Caribbean off-ramp'],
          operationId: 'createCaribbeanSettlement',
          summary: 'Start a settlement (legacy)',
          deprecated: true,
          description:
            'Legacy route; new integrations use `/v2/settle`. A simulation in the local sandbox, funded internally without an input fee. Without an ' +
            '`Idempotency-Key` the service draws one.',
          headers: OptionalIdempotencyKey,
          body: CaribbeanOfframpRequest,
          response: { 201: CaribbeanOfframpResponse },
        },
      },
      async (request, reply) => {
        const { priced, ...body } = request.body;
        const { orgId } = principalOf(request);
        const keyed = { orgId, idempotencyKey: request.headers['idempotency-key'] ?? randomUUID() };
        const accepted = await acceptSettlement(
          deps,
          { ...settlementCommand(request, keyed, body), origin: 'caribbean', priced },
          { status: 201, showsPayee: false, present: settlementResource },
        );
        return sendAnswer(reply, accepted, `/v1/caribbean/settlements/${accepted.resourceId}`);
      },
    );

    app.get(
      '/v1/caribbean/settlements/:settlement_id',
      {
        config: { access: { auth: 'api_key', scope: 'read', headers: READ_HEADERS } },
        schema: {
          tags: ['Caribbean off-ramp'],
          operationId: 'getCaribbeanSettlement',
          summary: 'Read a settlement',
          params: SettlementPath,
          headers: Conditions,
          response: { 200: SettlementResponse, ...UNCHANGED },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const settlement = await getSettlementWithHistory(deps, orgId, request.params.settlement_id);
        return sendRead(request, reply, settlement, settlementDetail(settlement));
      },
    );
  };
