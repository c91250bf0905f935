import { createHash } from 'node:crypto';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { type CapabilityCatalog, requireSoundCatalog } from '../../domain/capability.ts';
import { CAPABILITY_CATALOG } from '../../domain/capability-catalog.ts';
import { catalogResource } from '../../domain/resource/capability.ts';
import { namesTag } from '../http/conditional.ts';
import { CapabilitiesResponse, CatalogConditions } from '../schemas/capability.ts';

/** JSON schemas: the document's generator wraps them into headers. */
const CATALOG_HEADERS = {
  ETag: { type: 'string', description: 'The SHA-256 of the bytes, in hex.' },
  Vary: { type: 'string', const: 'X-API-Key' },
} as const;

/**
 * The capability catalog (contract §14): without a key what is public, with one everything. Both answers are made
 * once, from a catalog that was checked.
 *
 * @throws when the catalog is not what the specification says
 */
export const capabilityRoutes =
  (catalog: CapabilityCatalog = CAPABILITY_CATALOG): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    requireSoundCatalog(catalog);
    const forEveryone = taggedBytes(catalog, false);
    const forPartners = taggedBytes(catalog, true);
    app.get(
      '/v2/capabilities',
      {
        config: { access: { auth: 'optional_api_key' } },
        schema: {
          tags: ['Posture'],
          operationId: 'getCapabilities',
          summary: 'Read the capability catalog',
          description: 'Without a key the public entries, with one all of them. No capability is live.',
          headers: CatalogConditions,
          response: {
            200: {
              description: 'The catalog.',
              headers: CATALOG_HEADERS,
              content: { 'application/json': { schema: CapabilitiesResponse } },
            },
            304: { description: 'The caller has this catalog.' },
          },
        },
      },
      async (request, reply) => {
        const { bytes, etag } = request.principal === null ? forEveryone : forPartners;
        reply.headers({ ETag: etag, Vary: 'X-API-Key' });
        if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
        return reply.type('application/json; charset=utf-8').send(bytes);
      },
    );
  };

function taggedBytes(
  catalog: CapabilityCatalog,
  isPartner: boolean,
): { readonly bytes: Buffer; readonly etag: string } {
  const bytes = Buffer.from(JSON.stringify(catalogResource(catalog, isPartner)));
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('hex')}"` };
}
