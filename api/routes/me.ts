import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { countActiveKeys, getApiKey } from '../../db/queries/api-key.ts';
import { getOrganization } from '../../db/queries/organization.ts';
import { listQuotaUses } from '../../db/queries/quota.ts';
import { countWebhooks } from '../../db/queries/webhook.ts';
import { QUOTA_KINDS, quotaOf, requestsPerMinuteOf } from '../../domain/quota.ts';
import { apiKeyResource } from '../../domain/resource/api-key.ts';
import { organizationResource } from '../../domain/resource/organization.ts';
import type { ApiDeps } from '../deps.ts';
import { principalOf } from '../route-config.ts';
import { CallerResponse } from '../schemas/me.ts';

/** Who the caller is, and how much it may do (contract §3). */
export const meRoutes =
  ({ db, config, now }: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/v1/me',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: ['Organizations and keys'],
          operationId: 'getCaller',
          summary: 'Read your own key, its organization, and what is left of its quotas',
          description: 'For a key of any scope.',
          response: { 200: CallerResponse },
        },
      },
      async (request) => {
        const { orgId, keyId, allowance } = principalOf(request);
        const at = now();
        const organization = await getOrganization(db, orgId);
        const key = await getApiKey(db, orgId, keyId);
        const used: Partial<Record<string, number>> = Object.fromEntries([
          ['api_keys', await countActiveKeys(db, orgId, at)],
          ['webhooks', await countWebhooks(db, orgId)],
          ...(await listQuotaUses(db, orgId)).map((use) => [use.kind, use.used] as const),
        ]);
        return {
          organization: organizationResource(organization),
          key: apiKeyResource(key, at),
          limits: {
            requests_per_minute: requestsPerMinuteOf(allowance, config.rateLimitPerMinute),
            quotas: QUOTA_KINDS.map((kind) => ({ kind, used: used[kind] ?? 0, max: quotaOf(allowance, kind) })),
          },
        };
      },
    );
  };
