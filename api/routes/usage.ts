/** What the organization used, by days (contract §14). The capability `usage-reporting` stays gated. */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { readUsage } from '../../db/queries/usage.ts';
import { REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { usageResource } from '../../domain/resource/usage.ts';
import { USAGE_DAYS_MAX } from '../../domain/usage.ts';
import type { ApiDeps } from '../deps.ts';
import { principalOf } from '../route-config.ts';
import { UsageQuery, UsageResponse } from '../schemas/usage.ts';

export const usageRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/v1/usage',
      {
        config: { access: { auth: 'api_key', scope: 'read', isLowPriority: true, cost: REQUEST_WEIGHTS.usage } },
        schema: {
          tags: ['Organizations and keys'],
          operationId: 'getUsage',
          summary: 'Read what the organization used',
          description:
            `Counted from the records, by days in UTC, at most ${USAGE_DAYS_MAX} of them. A settlement, a verification and a ` +
            'delivery belong to the day on which they began. Excluded from the reviewed partner contract.',
          querystring: UsageQuery,
          response: { 200: UsageResponse },
        },
      },
      async (request) => {
        const { orgId } = principalOf(request);
        const keeping = { days: deps.config.retentionDays.events, now: deps.now() };
        return usageResource(await deps.readList((db) => readUsage(db, orgId, request.query, keeping)));
      },
    );
  };
