import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { createOrganization } from '../../db/commands/organization.ts';
import { newId } from '../../db/id.ts';
import { getOrganization } from '../../db/queries/organization.ts';
import { type Charge, callerOf } from '../../db/queries/rate-limit.ts';
import { DomainError } from '../../domain/error.ts';
import type { Organization } from '../../domain/organization.ts';
import { firstTier } from '../../domain/quota.ts';
import { budgetsOf, REQUEST_WEIGHTS } from '../../domain/rate-limit.ts';
import { organizationResource } from '../../domain/resource/organization.ts';
import { environmentName, isRemote } from '../../domain/runtime.ts';
import { isLoopbackHost } from '../../domain/webhook-target.ts';
import { issueApiKey } from '../../process/api-key.ts';
import type { ApiDeps } from '../deps.ts';
import type { ClientAddress } from '../http/client-address.ts';
import { requireBudget } from '../http/rate-limit.ts';
import { principalOf } from '../route-config.ts';
import {
  CreateOrganizationRequest,
  OrganizationCreatedResponse,
  OrganizationPath,
  OrganizationResponse,
} from '../schemas/organization.ts';

const TAGS = ['Organizations and keys'];

const TOO_MANY_OF_NETWORK =
  'Too many organizations signed up from this network today. Wait for the time in the Retry-After header.';

/** Organizations (contract §3). Anyone may create one; afterwards only its own keys can read it. */
export const organizationRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    const budget = budgetsOf(deps.config.rateLimitPerMinute)['sign-ups-of-network'];
    /** What an organization costs its network. The local sandbox's own machine is not charged. */
    const priceOf = ({ exact, logged }: ClientAddress): Charge | undefined =>
      !isRemote(deps.runtime) && exact !== null && isLoopbackHost(exact)
        ? undefined
        : { caller: callerOf(budget, logged), budget, cost: 1 };

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
        const price = priceOf(request.clientAddress);
        const counted = await createOrganization(deps, organization, { credential, price, requestId: request.id });
        if (counted && counted.used > budget.quota)
          await requireBudget(reply, budget, counted, { detail: TOO_MANY_OF_NETWORK });
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
