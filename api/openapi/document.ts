/**
 * The OpenAPI document (contract §15), generated from the schemas and the declarations of the routes. What operations
 * of one kind have in common is added from the declarations by `answer.ts`.
 */
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import fp from 'fastify-plugin';
import { fastifyZodOpenApiPlugin, fastifyZodOpenApiTransformers } from 'fastify-zod-openapi';
import type { OpenAPIV3_1 } from 'openapi-types';
import type { ApiDeps } from '../deps.ts';
import { DEFAULT_SECURITY, describeSharedAnswers } from './answer.ts';
import { addComponents, tidyReferences, tidySchema } from './component.ts';
import { addExamples, readExamples } from './example.ts';
import { addLinks } from './link.ts';
import { createSharedResponses } from './response.ts';
import { WEBHOOK_PARAMETERS, WEBHOOK_RESPONSES, webhooks } from './webhook.ts';

const API_VERSION = '2.0.0';

export const TAGS = {
  Settlement: 'Start, read, list and cancel settlements.',
  'Provider webhooks':
    'What the payment and identity providers send to the service, up to 256 KiB. Partners do not call it.',
  'Bank linking': 'Link a bank account that pays by ACH.',
  Consumer: 'What a consumer does with a session of their own.',
  'Organizations and keys': 'Sign up, and manage API keys.',
  Recipients: 'Who is paid.',
  Verification: 'Verify recipients.',
  'Wallets and fees': 'Simulated wallets, and fee estimates.',
  'Caribbean off-ramp': 'The older routes for settlements, and evidence certificates.',
  Webhooks: 'Subscriptions, deliveries and events.',
  Posture: 'What the service can do here, and what it cannot.',
  Sandbox: 'Test helpers, only in the local sandbox.',
  Service: 'Health, public keys and the OpenAPI document.',
} as const;

const SECURITY_SCHEMES: Record<string, OpenAPIV3_1.SecuritySchemeObject> = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'Exactly one header with exactly one key.',
  },
  ConsumerSession: {
    type: 'http',
    scheme: 'bearer',
    description: 'The `access_token` of `/consumer/auth/verify-otp`. The header has at most 256 characters.',
  },
};

const serversOf = ({ publicBaseUrl }: Pick<ApiDeps['config'], 'publicBaseUrl'>): OpenAPIV3_1.ServerObject[] => [
  { url: publicBaseUrl, description: 'This service.' },
];

export const openapi = fp(async (app: FastifyInstance, { deps }: { deps: Pick<ApiDeps, 'config'> }) => {
  // Before `override` describes a schema, it is empty; zod-openapi must allow that for schemas with a default.
  await app.register(fastifyZodOpenApiPlugin, {
    documentOpts: { override: tidySchema, allowEmptySchema: { default: true } },
  });
  const recorded = await readExamples();
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Settlement service',
        version: API_VERSION,
        license: { name: 'All rights reserved', identifier: 'LicenseRef-All-rights-reserved' },
        description:
          'Settlement and payout API for Caribbean corridors. Controlled infrastructure under hardening: value moves ' +
          'only in the local sandbox, as a simulation. Elsewhere every value operation answers 503 before anything ' +
          'is collected. No corridor is live.\n\nAnswers may get more fields, and enumerations that say "May grow" more ' +
          'values: a client must accept both. Requests are closed: an unknown field is refused.\n\nEvery answer has ' +
          '`X-Request-ID`, `X-Content-Type-Options` and `Cache-Control`.',
      },
      security: DEFAULT_SECURITY,
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: SECURITY_SCHEMES,
      },
    },
    transform: fastifyZodOpenApiTransformers.transform,
    transformObject: (options) => {
      const document = fastifyZodOpenApiTransformers.transformObject(options) as OpenAPIV3_1.Document;
      tidyReferences(document);
      const described = app.operations.filter(({ schema }) => !schema.hide);
      const shared = createSharedResponses();
      for (const operation of described) describeSharedAnswers(document, operation, shared);
      const links = addLinks(document, described);
      return addComponents(
        { ...document, webhooks, servers: serversOf(deps.config) },
        {
          responses: { ...shared.components(), ...WEBHOOK_RESPONSES },
          parameters: WEBHOOK_PARAMETERS,
          links,
          examples: addExamples(document, recorded),
        },
      );
    },
  });
});
