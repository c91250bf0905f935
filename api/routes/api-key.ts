/** Creating, listing, rotating and revoking an organization's keys (contract §3). */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { createApiKey, revokeApiKey, rotateApiKey } from '../../db/commands/api-key.ts';
import { listApiKeys } from '../../db/queries/api-key.ts';
import { ACTIVE_KEYS_MAX } from '../../domain/api-key.ts';
import { DomainError } from '../../domain/error.ts';
import { apiKeyResource } from '../../domain/resource/api-key.ts';
import { type Scope, scopeCovers } from '../../domain/scope.ts';
import { issueApiKey } from '../../process/api-key.ts';
import type { ApiDeps } from '../deps.ts';
import { CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { refusalByRules } from '../http/validation.ts';
import { type Principal, principalOf } from '../route-config.ts';
import {
  ApiKeyCreatedResponse,
  ApiKeyPath,
  ApiKeyResponse,
  ApiKeyRevokedResponse,
  ApiKeyRotatedResponse,
  CreateApiKeyRequest,
  createApiKeyRules,
  RevokeApiKeyQuery,
} from '../schemas/api-key.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { OrganizationPath } from '../schemas/organization.ts';
import { PageQuery } from '../schemas/page.ts';

const TAGS = ['Organizations and keys'];

export const apiKeyRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/orgs/:org_id/keys',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'full',
            isLowPriority: true,
            ...CREATES,
            refusals: [...CREATES.refusals, 'state_conflict'],
            rules: createApiKeyRules(deps.now),
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'createApiKey',
          summary: 'Create an API key',
          description:
            `An organization has at most ${ACTIVE_KEYS_MAX} active keys. All of them share its rate limit. A key makes ` +
            'no key that may do more than itself: expiry and allowed addresses that are left out are its own.',
          params: OrganizationPath,
          headers: OptionalIdempotencyKey,
          body: CreateApiKeyRequest,
          response: { 201: ApiKeyCreatedResponse },
        },
      },
      async (request, reply) => {
        const caller = principalOf(request);
        const { name, scope, expires_at: expiresAt = null, allowed_cidrs: allowedCidrs = null } = request.body;
        const now = deps.now();
        // The route requires scope `full`, which covers every scope. The rule must not depend on that.
        requireScope(caller, scope);
        const refusal = refusalByRules(request);
        if (refusal && request.params.org_id !== caller.orgId) throw refusal;
        requireOwnOrganization(caller, request.params.org_id);
        const { apiKey, credential } = issueApiKey(deps);
        const wanted = { name, scope, expiresAt, allowedCidrs, credential };
        const answer = await createApiKey(deps, { ...caller, requestId: request.id }, wanted, {
          keyed: keyedRequest(request, caller.orgId),
          status: 201,
          refusal,
          show: (key) => ({ ...apiKeyResource(key, now), api_key: apiKey }),
        });
        return sendAnswer(reply, answer);
      },
    );

    app.get(
      '/v1/orgs/:org_id/keys',
      {
        config: { access: { auth: 'api_key', scope: 'full', isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'listApiKeys',
          summary: 'List the API keys',
          params: OrganizationPath,
          querystring: PageQuery,
          response: {
            200: pageOf(ApiKeyResponse, 'All keys of the organization, including invalid ones, newest first.'),
          },
        },
      },
      async (request, reply) => {
        const caller = principalOf(request);
        requireOwnOrganization(caller, request.params.org_id);
        const now = deps.now();
        const read = () => listApiKeys(deps.db, caller.orgId, request.query);
        return answerPage(request, reply, { page: request.query, read, show: (key) => apiKeyResource(key, now) });
      },
    );

    app.post(
      '/v1/orgs/keys/:key_id/rotate',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'read',
            isLowPriority: true,
            refusals: ['scope_insufficient', 'idempotency_key_reused', 'state_conflict'],
            headers: CREATES.headers,
            rotates: (request) => ApiKeyPath.safeParse(request.params).data?.key_id,
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'rotateApiKey',
          summary: 'Replace an API key',
          description:
            'Any active key may rotate itself. Rotating another key needs scope `full`, and no tighter limits than that ' +
            'key has. The new key has the same name, scope, expiry and allowed addresses. The event `api_key.rotated` ' +
            'tells the organization. With an `Idempotency-Key` the request can be repeated for 24 hours, also with the ' +
            'key that has rotated itself.',
          params: ApiKeyPath,
          headers: OptionalIdempotencyKey,
          response: { 200: ApiKeyRotatedResponse },
        },
        onRequest: async (request) => {
          const caller = principalOf(request);
          if (request.params.key_id !== caller.keyId) requireScope(caller, 'full');
        },
      },
      async (request, reply) => {
        const caller = principalOf(request);
        const { key_id: keyId } = request.params;
        const { apiKey, credential } = issueApiKey(deps);
        const rotation = { keyId, credential };
        const answer = await rotateApiKey(deps, { ...caller, requestId: request.id }, rotation, {
          keyed: keyedRequest(request, caller.orgId),
          status: 200,
          show: (key) => ({ ...apiKeyResource(key, deps.now()), api_key: apiKey, rotated_from: keyId }),
        });
        return sendAnswer(reply, answer);
      },
    );

    app.delete(
      '/v1/orgs/keys/:key_id',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'full',
            isLowPriority: true,
            refusals: ['state_conflict', 'last_full_key'],
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'revokeApiKey',
          summary: 'Revoke an API key',
          description:
            'The key stays invalid permanently. Revoking it again changes nothing. With `descendants=true` the valid keys ' +
            'that it made are revoked too, those that they made, and those that took their place: use it for a key that has ' +
            'leaked, also when it has rotated itself.',
          params: ApiKeyPath,
          querystring: RevokeApiKeyQuery,
          response: { 200: ApiKeyRevokedResponse },
        },
      },
      async (request) => {
        const caller = { ...principalOf(request), requestId: request.id };
        const { key, descendants } = await revokeApiKey(
          deps,
          caller,
          request.params.key_id,
          request.query.descendants ?? false,
        );
        return {
          ...apiKeyResource(key, deps.now()),
          revoked_descendants: descendants.map(({ keyId }) => keyId),
        };
      },
    );
  };

function requireScope(caller: Principal, scope: Scope): void {
  if (!scopeCovers(caller.scope, scope)) throw new DomainError('scope_insufficient', { required_scope: scope });
}

function requireOwnOrganization(caller: Principal, orgId: string): void {
  if (orgId !== caller.orgId) throw new DomainError('not_found');
}
