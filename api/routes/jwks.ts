import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { ApiDeps } from '../deps.ts';
import { JsonWebKeySet } from '../schemas/certificate.ts';

/** The keys that verify certificates, old ones included, so that a certificate can be checked without us (contract §7). */
export const jwksRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.get(
      '/.well-known/jwks.json',
      {
        config: { access: { auth: 'none' } },
        schema: {
          tags: ['Service'],
          operationId: 'getCertificateKeys',
          summary: 'The public keys that verify certificates',
          response: { 200: JsonWebKeySet },
        },
      },
      async () => deps.certificateKeys.jwks,
    );
  };
