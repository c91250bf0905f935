import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { createOrganization } from '../../db/commands/organization.ts';
import { newId } from '../../db/id.ts';
import { getOrganization } from '../../db/queries/organization.ts';
import { DomainError } from '../../domain/error.ts';
import type { Organization } from '../../domain/organization.ts';
import { firstTier } from '../../domain/quota.ts';
import { REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { organizationResource } from '../../domain/resource/organization.ts';
import { environmentName } from '../../domain/runtime.ts';
import { issueApiKey } from '../../process/api-key.ts';
import type { ApiDeps } from '../deps.ts';
import { principalOf } from '../route-config.ts';
import {
  CreateOrganizationRequest,
  OrganizationCreatedResponse,
  OrganizationPath,
  OrganizationResponse,
} from '../schemas/organization.ts';

const TAGS = ['Organizations and keys'];

/** Organizations (contract §3). Anyone may create one; afterwards only its own keys can read it. */
export const organizationRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/orgs',
      {
        config: { access: { auth: 'none', budget: 'sign-up', cost: REQUEST_WEIGHTS.signUp } },
        schema: {
          tags: TAGS,
          operationId: 'createOrganization',
          summary: 'Create an organization and its first API key',
          body: CreateOrganizationRequest,
          response: { 201: OrganizationCreatedResponse },
        },
      },
      async (request, reply) => {
        const { name, country, contact_email: contactEmail } = request.body;
        const organization: Organization = {
          orgId: newId(),
          kind: 'partner',
          name,
          country,
          contactEmail,
          environment: environmentName(deps.runtime),
          createdAt: deps.now(),
          suspendedAt: null,
          tier: firstTier(deps.runtime),
          limits: {},
        };
        const { apiKey, credential } = issueApiKey(deps);
        await createOrganization(deps, organization, credential, request.id);
        return reply
          .code(201)
          .send({ ...organizationResource(organization), key_id: credential.keyId, api_key: apiKey });
      },
    );

    app.get(
      '/v1/orgs/:org_id',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'getOrganization',
          summary: 'Read the organization',
          params: OrganizationPath,
          response: { 200: OrganizationResponse },
        },
      },
      async (request) => {
        const { orgId } = principalOf(request);
        if (request.params.org_id !== orgId) throw new DomainError('not_found');
        return organizationResource(await getOrganization(deps.db, orgId));
      },
    );
  };
