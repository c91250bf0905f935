import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { createReadiness } from '../../process/readiness.ts';
import type { ApiDeps } from '../deps.ts';
import { Liveness, Readiness } from '../schemas/health.ts';

/** Health checks (contract §15). Live: the process runs. Ready: `process/readiness.ts`. */
export const healthRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const readiness = createReadiness({ ...deps, log: app.log });
    app.get(
      '/health/live',
      {
        config: { access: { auth: 'none', uncounted: true } },
        schema: {
          tags: ['Service'],
          operationId: 'getLiveness',
          summary: 'Check that the process runs',
          response: { 200: Liveness },
        },
      },
      async () => ({ status: 'live' as const }),
    );

    app.get(
      '/health/ready',
      {
        config: { access: { auth: 'none', uncounted: true } },
        schema: {
          tags: ['Service'],
          operationId: 'getReadiness',
          summary: 'Check that the service can take requests',
          response: { 200: Readiness, 503: Readiness },
        },
      },
      async (_request, reply) => {
        const found = await readiness();
        return reply.code(found.status === 'ready' ? 200 : 503).send(found);
      },
    );
  };
