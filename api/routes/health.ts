import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { migrationCount } from '../../db/migrate.ts';
import { countAppliedMigrations } from '../../db/queries/health.ts';
import type { ApiDeps } from '../deps.ts';
import { Liveness, Readiness } from '../schemas/health.ts';

/**
 * Health checks (contract §15). Live: the process runs. Ready: PostgreSQL answers and has the migrations of this
 * version.
 */
export const healthRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const expected = migrationCount();
    app.get(
      '/health/live',
      {
        config: { access: { auth: 'none', uncounted: true } },
        schema: {
          tags: ['Service'],
          operationId: 'getLiveness',
          summary: 'The process runs',
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
          summary: 'The service can take requests',
          response: { 200: Readiness, 503: Readiness },
        },
      },
      async (request, reply) => {
        const [applied, temporal] = await Promise.all([
          countAppliedMigrations(deps.db).catch((error: unknown) => {
            request.log.warn({ err: error }, 'readiness could not query the database');
            return undefined;
          }),
          deps.temporalHealth(),
        ]);
        const ready = applied === expected;
        const postgres = applied === undefined ? ('down' as const) : ('up' as const);
        return reply.code(ready ? 200 : 503).send({
          status: ready ? 'ready' : 'not_ready',
          postgres,
          migrations: { applied: applied ?? null, expected },
          temporal,
        });
      },
    );
  };
