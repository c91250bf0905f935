/** The OpenAPI document (contract §15), as `openapi/document.ts` generates it. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { z } from 'zod';
import { takesGzip } from '../http/compression.ts';
import { ETAG_HEADER, sendTagged, sharedJson, type TaggedJson, tagged } from '../http/conditional.ts';
import { Conditions, constant } from '../schemas/common.ts';

const OpenApiDocument = z
  .looseObject({ openapi: constant('3.1.0', 'The version of OpenAPI.') })
  .meta({ id: 'OpenApiDocument', description: 'An OpenAPI document.' });

/** The document is made at the first request for it: it describes every route, and generating it takes long. */
export const openapiRoutes = (): FastifyPluginAsyncZodOpenApi => async (app) => {
  let document: TaggedJson | undefined;
  let compressed: Promise<TaggedJson> | undefined;
  app.get(
    '/openapi.json',
    {
      config: { access: { auth: 'none' } },
      schema: {
        tags: ['Service'],
        operationId: 'getOpenApiDocument',
        summary: 'Read the OpenAPI document',
        headers: Conditions,
        response: {
          200: {
            description: 'The document.',
            headers: { ETag: ETAG_HEADER },
            content: { 'application/json': { schema: OpenApiDocument } },
          },
          304: { description: 'The caller has the current document.' },
        },
      },
    },
    async (request, reply) => {
      document ??= sharedJson(app.swagger());
      reply.header('Vary', 'Accept-Encoding');
      if (!takesGzip(request)) return sendTagged(request, reply, document);
      compressed ??= promisify(gzip)(document.body).then(tagged);
      return sendTagged(request, reply.header('Content-Encoding', 'gzip'), await compressed);
    },
  );
};
