/** The OpenAPI document (contract §15), as `plugins/openapi.ts` generates it. */
import type { FastifyPluginAsync } from 'fastify';
import { z } from 'zod';

const OpenApiDocument = z.looseObject({ openapi: z.literal('3.1.0') }).meta({ id: 'OpenApiDocument' });

export const openapiRoutes = (): FastifyPluginAsync => async (app) => {
  app.get(
    '/openapi.json',
    {
      config: { access: { auth: 'none' } },
      schema: {
        tags: ['Service'],
        operationId: 'getOpenApiDocument',
        summary: 'This document',
        response: { 200: OpenApiDocument },
      },
    },
    async () => app.swagger(),
  );
};
