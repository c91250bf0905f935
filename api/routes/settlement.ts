/** Starting, reading and canceling a settlement (contract §6). */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { acceptSettlement } from '../../db/commands/acceptance.ts';
import { cancelSettlement } from '../../db/commands/settlement.ts';
import { getSettlementWithHistory } from '../../db/queries/settlement-history.ts';
import { settlementDetail, settlementResource } from '../../domain/resource/settlement.ts';
import type { ApiDeps } from '../deps.ts';
import { ACCEPTS_SETTLEMENT, settlementCommand } from '../http/acceptance.ts';
import { sendAnswer } from '../http/idempotent-answer.ts';
import { READ_HEADERS, sendRead, UNCHANGED } from '../http/pending-read.ts';
import type { WaitingRead } from '../http/prefer-wait.ts';
import { principalOf } from '../route-config.ts';
import { RequiredIdempotencyKeyV2 } from '../schemas/idempotency.ts';
import { SettlementPath, SettlementPreferences, SettlementResponse, SettleResponseV2 } from '../schemas/settlement.ts';
import { SettleRequestV2 } from '../schemas/settlement-command.ts';

export const settlementRoutes =
  (deps: ApiDeps, readWaiting: WaitingRead): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/settle',
      {
        config: { access: { auth: 'api_key', scope: 'settle', ...ACCEPTS_SETTLEMENT } },
        schema: {
          tags: ['Settlement'],
          operationId: 'createSettlement',
          summary: 'Start a settlement',
          description:
            'Local-sandbox simulation. The answer comes when the record is committed. Afterwards poll the settlement ' +
            'or subscribe to its events.',
          headers: RequiredIdempotencyKeyV2,
          body: SettleRequestV2,
          response: { 202: SettleResponseV2 },
        },
      },
      async (request, reply) => {
        const { priced, ...body } = request.body;
        const keyed = { orgId: principalOf(request).orgId, idempotencyKey: request.headers['idempotency-key'] };
        const accepted = await acceptSettlement(
          deps,
          { ...settlementCommand(request, keyed, body), origin: 'v2', priced },
          { status: 202, showsPayee: false, present: settlementResource },
        );
        return sendAnswer(reply, accepted, `/v2/settle/${accepted.resourceId}`);
      },
    );

    app.get(
      '/v2/settle/:settlement_id',
      {
        config: { access: { auth: 'api_key', scope: 'read', headers: [...READ_HEADERS, 'Preference-Applied'] } },
        schema: {
          tags: ['Settlement'],
          operationId: 'getSettlement',
          summary: 'Read a settlement',
          params: SettlementPath,
          headers: SettlementPreferences,
          response: { 200: SettlementResponse, ...UNCHANGED },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const { settlement_id: settlementId } = request.params;
        const read = () => getSettlementWithHistory(deps, orgId, settlementId);
        return await readWaiting(request, reply, { orgId, settlementId, read, show: settlementDetail });
      },
    );

    app.post(
      '/v2/settle/:settlement_id/cancel',
      {
        config: { access: { auth: 'api_key', scope: 'settle', refusals: ['state_conflict'], headers: READ_HEADERS } },
        schema: {
          tags: ['Settlement'],
          operationId: 'cancelSettlement',
          summary: 'Cancel a settlement that is not yet funded',
          params: SettlementPath,
          response: { 200: SettlementResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const { settlement_id: settlementId } = request.params;
        await cancelSettlement(deps, orgId, settlementId, request.id);
        const canceled = await getSettlementWithHistory(deps, orgId, settlementId);
        return sendRead(request, reply, canceled, settlementDetail(canceled));
      },
    );
  };
