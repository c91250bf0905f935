import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { CAPABILITY_CATALOG } from '../../domain/capability-catalog.ts';
import { catalogResource } from '../../domain/resource/capability.ts';
import { ETAG_HEADER, sendTagged, sharedJson } from '../http/conditional.ts';
import { CapabilitiesResponse } from '../schemas/capability.ts';
import { Conditions } from '../schemas/common.ts';

/** JSON schemas, which the generator of the OpenAPI document turns into header objects. */
const CATALOG_HEADERS = {
  ETag: ETAG_HEADER,
  Vary: { type: 'string', const: 'X-API-Key' },
} as const;

/**
 * The capability catalog (contract §14): the public entries without a key, all entries with one. Both answers are made
 * once, when the application starts.
 */
export const capabilityRoutes: FastifyPluginAsyncZodOpenApi = async (app) => {
  const forEveryone = sharedJson(catalogResource(CAPABILITY_CATALOG, false));
  const forPartners = sharedJson(catalogResource(CAPABILITY_CATALOG, true));
  app.get(
    '/v2/capabilities',
    {
      config: { access: { auth: 'optional_api_key' } },
      schema: {
        tags: ['Posture'],
        operationId: 'getCapabilities',
        summary: 'Read the capability catalog',
        description: 'The public entries without a key, all entries with one. No capability is live.',
        headers: Conditions,
        response: {
          200: {
            description: 'The catalog.',
            headers: CATALOG_HEADERS,
            content: { 'application/json': { schema: CapabilitiesResponse } },
          },
          304: { description: 'The caller has the current catalog.' },
        },
      },
    },
    async (request, reply) => {
      reply.header('Vary', 'X-API-Key');
      return sendTagged(request, reply, request.principal === null ? forEveryone : forPartners);
    },
  );
};
