/**
 * Test helpers of the local sandbox (contract §6): they send a provider's event, move one settlement's clock, list
 * inputs.
 */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { z } from 'zod';
import { advanceSettlement, sendSandboxEvent } from '../../db/commands/test-helper.ts';
import { parseDuration } from '../../domain/duration.ts';
import { formatMoney } from '../../domain/money.ts';
import { SCENARIOS } from '../../domain/sandbox/scenario.ts';
import { settlementTime } from '../../domain/settlement/state.ts';
import type { ApiDeps } from '../deps.ts';
import { principalOf } from '../route-config.ts';
import { Scenario } from '../schemas/scenario.ts';
import { SettlementPath } from '../schemas/settlement.ts';
import { AdvanceRequest, AdvanceResponse, SandboxEventRequest, SandboxEventResponse } from '../schemas/test-helper.ts';

export const testHelperRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/test-helpers/settlements/:settlement_id/events',
      {
        config: {
          access: { auth: 'api_key', scope: 'settle', remote: 'local_sandbox_only', refusals: ['state_conflict'] },
        },
        schema: {
          tags: ['Sandbox'],
          operationId: 'sendSandboxEvent',
          summary: "Have a settlement's provider send an event",
          description:
            'The simulator sends the signed event to the inbound webhook, once for each accepted request. Payout ' +
            'events stand for the answer of the payout rail.',
          params: SettlementPath,
          body: SandboxEventRequest,
          response: { 202: SandboxEventResponse },
        },
      },
      async (request, reply) => {
        const wanted = { ...request.body, requestId: request.id };
        const { orgId } = principalOf(request);
        const sent = await sendSandboxEvent(deps, orgId, request.params.settlement_id, wanted);
        const { settlement, event, amountMinor, commandId } = sent;
        return reply.code(202).send({
          command_id: commandId,
          settlement_id: settlement.settlementId,
          event,
          amount: amountMinor === 0n ? null : formatMoney(amountMinor, settlement.sourceCurrency),
          currency: settlement.sourceCurrency,
          environment: settlement.environment,
          simulation: true,
        });
      },
    );

    app.post(
      '/v2/test-helpers/settlements/:settlement_id/advance',
      {
        config: {
          access: { auth: 'api_key', scope: 'settle', remote: 'local_sandbox_only', refusals: ['state_conflict'] },
        },
        schema: {
          tags: ['Sandbox'],
          operationId: 'advanceSettlement',
          summary: "Move a settlement's own clock forward",
          description: 'By default to the end of the current wait. Other settlements are not affected.',
          params: SettlementPath,
          body: AdvanceRequest,
          response: { 202: AdvanceResponse },
        },
      },
      async (request, reply) => {
        const { orgId } = principalOf(request);
        const by = request.body?.by;
        const now = deps.now();
        const move = { byMs: by === undefined ? undefined : parseDuration(by), now, requestId: request.id };
        const settlement = await advanceSettlement(deps, orgId, request.params.settlement_id, move);
        return reply.code(202).send({
          settlement_id: settlement.settlementId,
          status: settlement.status,
          now: settlementTime(settlement, now).toISOString(),
          expires_at: settlement.expiresAt?.toISOString() ?? null,
          environment: settlement.environment,
          simulation: true,
        });
      },
    );

    app.get(
      '/v2/test-helpers/scenarios',
      {
        config: { access: { auth: 'api_key', scope: 'read', remote: 'local_sandbox_only' } },
        schema: {
          tags: ['Sandbox'],
          operationId: 'listScenarios',
          summary: 'List every sandbox input with the statuses that it leads to',
          description:
            'The tests of the service run each of them. An operator resolves a review by `npm run ops -- resolve`.',
          response: { 200: z.array(Scenario).readonly() },
        },
      },
      async (_request, reply) => reply.send(SCENARIOS),
    );
  };
