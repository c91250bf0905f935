import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type CapabilityCatalog, requireValidCatalog } from '../../domain/capability.ts';
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
 *
 * @throws Error if the catalog is invalid
 */
export const capabilityRoutes =
  (catalog: CapabilityCatalog = CAPABILITY_CATALOG): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    requireValidCatalog(catalog);
    const forEveryone = sharedJson(catalogResource(catalog, false));
    const forPartners = sharedJson(catalogResource(catalog, true));
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
