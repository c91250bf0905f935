/**
 * The OpenAPI document (contract §15), generated from the schemas and the declarations of the routes. What operations
 * of one kind answer alike is added from the declarations by `openapi-answer.ts`.
 */
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { fastifyZodOpenApiPlugin, fastifyZodOpenApiTransformers } from 'fastify-zod-openapi';
import type { OpenAPIV3_1 } from 'openapi-types';
import { describeSharedAnswers } from './openapi-answer.ts';
import { addComponents, tidySchema } from './openapi-component.ts';
import { addLinks } from './openapi-link.ts';

const API_VERSION = '2.0.0';

const TAGS = [
  'Settlement',
  'Provider webhooks',
  'Bank linking',
  'Consumer',
  'Organizations and keys',
  'Recipients',
  'Verification',
  'Wallets and fees',
  'Caribbean off-ramp',
  'Webhooks',
  'Posture',
  'Sandbox',
  'Service',
] as const;

export const openapi = fp(async (app: FastifyInstance) => {
  // Before `override` describes a schema, it is empty; zod-openapi must allow that for schemas with a default.
  await app.register(fastifyZodOpenApiPlugin, {
    documentOpts: { override: tidySchema, allowEmptySchema: { default: true } },
  });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Settlement service',
        version: API_VERSION,
        description:
          'Settlement and payout API for Caribbean corridors. Controlled infrastructure under hardening: value moves ' +
          'only in the local sandbox, as a simulation. Elsewhere every value operation answers 503 before anything ' +
          'is collected. No corridor is live.',
      },
      tags: TAGS.map((name) => ({ name })),
      components: {
        securitySchemes: {
          ApiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'X-API-Key',
            description: 'Exactly one header with exactly one key.',
          },
          ConsumerSession: { type: 'http', scheme: 'bearer' },
        },
      },
    },
    transform: fastifyZodOpenApiTransformers.transform,
    transformObject: (options) => {
      const document = fastifyZodOpenApiTransformers.transformObject(options) as OpenAPIV3_1.Document;
      const described = app.operations.filter(({ schema }) => !schema.hide);
      for (const operation of described) describeSharedAnswers(document, operation);
      addLinks(document, described);
      return addComponents(document);
    },
  });
});
