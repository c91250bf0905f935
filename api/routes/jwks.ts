import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { ApiDeps } from '../deps.ts';
import { JsonWebKeySet } from '../schemas/certificate.ts';

/** The keys that verify certificates, including old ones (contract §7). Anyone can verify a certificate with them. */
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
