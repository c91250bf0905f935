import type { FastifyBaseLogger } from 'fastify';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { z } from 'zod';
import { migrationCount } from '../../db/migrate.ts';
import { countAppliedMigrations } from '../../db/queries/health.ts';
import { asProcess } from '../../db/tenant.ts';
import type { ApiDeps } from '../deps.ts';
import { Liveness, Readiness } from '../schemas/health.ts';

/** How old an answer about readiness may be. */
const PROBE_INTERVAL_MS = 1_000;

/**
 * Health checks (contract §15). Live: the process runs. Ready: PostgreSQL answers and has the migrations of this
 * version.
 */
export const healthRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const expected = migrationCount();
    const probe = async (log: FastifyBaseLogger): Promise<z.output<typeof Readiness>> => {
      const [applied, temporal] = await Promise.all([
        countAppliedMigrations(deps.db).catch((error: unknown) => {
          log.warn({ err: error }, 'readiness could not query the database');
          return undefined;
        }),
        deps.temporalHealth(),
      ]);
      return {
        status: applied === expected ? 'ready' : 'not_ready',
        postgres: applied === undefined ? 'down' : 'up',
        migrations: { applied: applied ?? null, expected },
        temporal,
      };
    };
    // All requests of a second share one probe: anybody may ask, and asking must cost others nothing.
    let last: { readonly atMs: number; readonly found: ReturnType<typeof probe> } | undefined;
    const readiness = (log: FastifyBaseLogger): ReturnType<typeof probe> => {
      const nowMs = deps.now().getTime();
      if (!last || Math.abs(nowMs - last.atMs) >= PROBE_INTERVAL_MS)
        last = { atMs: nowMs, found: asProcess(() => probe(log)) };
      return last.found;
    };
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
        const found = await readiness(request.log);
        return reply.code(found.status === 'ready' ? 200 : 503).send(found);
      },
    );
  };
