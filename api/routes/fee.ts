import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { feeResource } from '../../domain/resource/fee.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { FeeEstimateRequest, FeeEstimateResponse } from '../schemas/fee.ts';

/** Fee estimates from the static schedule (contract §5). They are neither a quote nor an authorization. */
export const feeRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/fees/estimate',
      {
        config: { access: { auth: 'api_key', scope: 'read', readOnly: true, remote: 'local_sandbox_only' } },
        schema: {
          tags: ['Wallets and fees'],
          operationId: 'estimateFees',
          summary: 'Estimate the fees of a settlement',
          body: FeeEstimateRequest,
          response: { 200: FeeEstimateResponse },
        },
      },
      async ({ body: pricing }) => ({
        ...feeResource(pricing),
        executable: false as const,
        environment: environmentName(deps.runtime),
      }),
    );
  };
