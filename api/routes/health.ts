import type { FastifyBaseLogger } from 'fastify';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { z } from 'zod';
import { migrationCount } from '../../db/migrate.ts';
import { probeDatabase } from '../../db/queries/health.ts';
import { asProcess } from '../../db/tenant.ts';
import type { ApiDeps } from '../deps.ts';
import { Liveness, Readiness } from '../schemas/health.ts';

/** How old an answer about readiness may be. */
const PROBE_INTERVAL_MS = 1_000;

/** A clock that is off by more judges expiries and signatures wrongly. */
const CLOCK_OFFSET_MAX_MS = 5_000;

/**
 * Health checks (contract §15). Live: the process runs. Ready: PostgreSQL takes writes and has at least the migrations of
 * this version, and this process's clock agrees with PostgreSQL's. A database that is ahead is one that was migrated for
 * a later version, while this one still serves.
 */
export const healthRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const expected = migrationCount();
    const probe = async (log: FastifyBaseLogger): Promise<z.output<typeof Readiness>> => {
      const startedMs = performance.now();
      const [database, temporal] = await Promise.all([
        probeDatabase(deps.db).then(
          (found) => {
            // PostgreSQL read its clock somewhere between the question and the answer.
            const halfMs = (performance.now() - startedMs) / 2;
            return { ...found, clockOffsetMs: Math.round(deps.now().getTime() - halfMs - found.now.getTime()) };
          },
          (error: unknown) => {
            log.warn({ err: error }, 'readiness could not query the database');
            return undefined;
          },
        ),
        deps.temporalHealth(),
      ]);
      if (!database)
        return {
          status: 'not_ready',
          postgres: 'down',
          migrations: { applied: null, expected },
          clock_offset_ms: null,
          temporal,
        };
      const { applied, isReadOnly, clockOffsetMs } = database;
      const isClockRight = Math.abs(clockOffsetMs) <= CLOCK_OFFSET_MAX_MS;
      if (!isClockRight) log.warn({ clock_offset_ms: clockOffsetMs }, "this process's clock differs from PostgreSQL's");
      return {
        status: applied >= expected && !isReadOnly && isClockRight ? 'ready' : 'not_ready',
        postgres: isReadOnly ? 'read_only' : 'up',
        migrations: { applied, expected },
        clock_offset_ms: clockOffsetMs,
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
