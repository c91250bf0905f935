import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { newId } from '../../db/id.ts';
import { estimateResource } from '../../domain/resource/estimate.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import {
  EstimateRequestV2,
  EstimateResponseV2,
  OfframpEstimateRequest,
  OfframpEstimateResponse,
} from '../schemas/estimate.ts';

/** Estimates (contract §5). They are for display only: nothing is stored and nothing executes them. */
export const estimateRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const environment = environmentName(deps.runtime);

    app.post(
      '/v2/estimate',
      {
        config: { access: { auth: 'api_key', scope: 'read', readOnly: true } },
        schema: {
          tags: ['Settlement'],
          operationId: 'estimateSettlement',
          summary: 'Estimate a settlement, for display only',
          body: EstimateRequestV2,
          response: { 200: EstimateResponseV2 },
        },
      },
      async ({ body: pricing }) => ({
        estimate_id: newId(),
        payment_method: pricing.paymentMethod,
        ...estimateResource(pricing, deps.now()),
        environment,
      }),
    );

    app.post(
      '/v1/caribbean/estimate',
      {
        config: { access: { auth: 'api_key', scope: 'read', readOnly: true, remote: 'local_sandbox_only' } },
        schema: {
          tags: ['Caribbean off-ramp'],
          operationId: 'estimateOfframp',
          summary: 'Estimate an off-ramp, for display only',
          body: OfframpEstimateRequest,
          response: { 200: OfframpEstimateResponse },
        },
      },
      async ({ body: pricing }) => ({ estimate_id: newId(), ...estimateResource(pricing, deps.now()), environment }),
    );
  };
