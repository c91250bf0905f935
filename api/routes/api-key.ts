/**
 * Management of an organization's keys (contract §3). Every change runs under the organization's lock and, when one
 * key acts on another, asks there once more whether the acting key is still valid: a revoked key leaves nothing behind.
 */
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { Tx } from '../../db/client.ts';
import {
  getApiKey,
  hasOtherFullKey,
  insertApiKey,
  listApiKeys,
  retireApiKey,
  revokeApiKey,
} from '../../db/queries/api-key.ts';
import { lockOrganization } from '../../db/queries/organization.ts';
import { type ApiKey, apiKeyStatus } from '../../domain/api-key.ts';
import { DomainError, ValidationError } from '../../domain/error.ts';
import { apiKeyResource } from '../../domain/resource/api-key.ts';
import { type Scope, scopeCovers } from '../../domain/scope.ts';
import type { ApiDeps } from '../deps.ts';
import { issueApiKey } from '../http/api-key.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { type Principal, principalOf } from '../route-config.ts';
import {
  ApiKeyCreatedResponse,
  ApiKeyPath,
  ApiKeyResponse,
  ApiKeyRotatedResponse,
  CreateApiKeyRequest,
} from '../schemas/api-key.ts';
import { PageQuery } from '../schemas/common.ts';
import { OrganizationPath } from '../schemas/organization.ts';

const TAGS = ['Organizations and keys'];

export const apiKeyRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/orgs/:org_id/keys',
      {
        config: { access: { auth: 'api_key', scope: 'full' } },
        schema: {
          tags: TAGS,
          operationId: 'createApiKey',
          summary: 'Create an API key',
          params: OrganizationPath,
          body: CreateApiKeyRequest,
          response: { 201: ApiKeyCreatedResponse },
        },
      },
      async (request, reply) => {
        const caller = principalOf(request);
        const { name, scope, expires_at: expiry } = request.body;
        const now = deps.now();
        const expiresAt = expiry === undefined ? null : new Date(expiry);
        // Scope `full`, which the route asks for, covers all; the rule must not depend on that.
        requireScope(caller, scope);
        if (expiresAt !== null && expiresAt <= now)
          throw new ValidationError([{ field: 'expires_at', rule: 'must be in the future' }]);
        requireOwnOrganization(caller, request.params.org_id);
        const issued = issueApiKey(deps, { orgId: caller.orgId, name, scope, expiresAt, createdAt: now });
        const key = await deps.db.transaction(async (tx) => {
          await lockOrganization(tx, caller.orgId);
          await requireValidCaller(tx, caller, now);
          return await insertApiKey(tx, issued.record);
        });
        return reply.code(201).send({ ...apiKeyResource(key, now), api_key: issued.apiKey });
      },
    );

    app.get(
      '/v1/orgs/:org_id/keys',
      {
        config: { access: { auth: 'api_key', scope: 'full' } },
        schema: {
          tags: TAGS,
          operationId: 'listApiKeys',
          summary: 'List the API keys',
          params: OrganizationPath,
          querystring: PageQuery,
          response: { 200: pageOf(ApiKeyResponse, 'Every key the organization ever had, newest first.') },
        },
      },
      async (request, reply) => {
        const caller = principalOf(request);
        requireOwnOrganization(caller, request.params.org_id);
        const now = deps.now();
        const { items, total } = await listApiKeys(deps.db, caller.orgId, request.query);
        return answerPage(request, reply, request.query, {
          items: items.map((key) => apiKeyResource(key, now)),
          total,
        });
      },
    );

    app.post(
      '/v1/orgs/keys/:key_id/rotate',
      {
        config: { access: { auth: 'api_key', scope: 'read', refusals: ['scope_insufficient', 'state_conflict'] } },
        schema: {
          tags: TAGS,
          operationId: 'rotateApiKey',
          summary: 'Replace an API key',
          description:
            'Any active key may rotate itself; rotating another one needs scope `full`. The successor keeps name, scope and expiry.',
          params: ApiKeyPath,
          response: { 200: ApiKeyRotatedResponse },
        },
        onRequest: async (request) => {
          const caller = principalOf(request);
          if (request.params.key_id !== caller.keyId) requireScope(caller, 'full');
        },
      },
      async (request) => {
        const now = deps.now();
        const { successor, apiKey } = await rotate(deps, principalOf(request), request.params.key_id, now);
        return { ...apiKeyResource(successor, now), api_key: apiKey, rotated_from: request.params.key_id };
      },
    );

    app.delete(
      '/v1/orgs/keys/:key_id',
      {
        config: { access: { auth: 'api_key', scope: 'full', refusals: ['state_conflict', 'last_full_key'] } },
        schema: {
          tags: TAGS,
          operationId: 'revokeApiKey',
          summary: 'Revoke an API key',
          description: 'For ever. Revoking a revoked key again changes nothing.',
          params: ApiKeyPath,
          response: { 200: ApiKeyResponse },
        },
      },
      async (request) => {
        const now = deps.now();
        return apiKeyResource(await revoke(deps, principalOf(request), request.params.key_id, now), now);
      },
    );
  };

/** One transaction, so that a key has at most one successor: of two that race, the second finds it rotated. */
async function rotate(
  deps: ApiDeps,
  caller: Principal,
  keyId: string,
  now: Date,
): Promise<{ successor: ApiKey; apiKey: string }> {
  return await deps.db.transaction(async (tx) => {
    await lockOrganization(tx, caller.orgId);
    if (keyId !== caller.keyId) await requireValidCaller(tx, caller, now);
    const key = await getApiKey(tx, caller.orgId, keyId);
    const status = apiKeyStatus(key, now);
    if (status !== 'active')
      throw new DomainError('state_conflict', { current_state: status }, 'Only an active key can be rotated.');
    // The expiry stays: else a short-lived key could prolong itself for ever.
    const { name, scope, expiresAt } = key;
    const issued = issueApiKey(deps, { orgId: caller.orgId, name, scope, expiresAt, createdAt: now });
    const successor = await insertApiKey(tx, issued.record);
    await retireApiKey(tx, key, successor.keyId);
    return { successor, apiKey: issued.apiKey };
  });
}

async function revoke(deps: ApiDeps, caller: Principal, keyId: string, now: Date): Promise<ApiKey> {
  return await deps.db.transaction(async (tx) => {
    await lockOrganization(tx, caller.orgId);
    if (keyId !== caller.keyId) await requireValidCaller(tx, caller, now);
    const key = await getApiKey(tx, caller.orgId, keyId);
    if (key.status === 'revoked') return key;
    // Not a success: who revokes a key wants it to have no valid successor.
    if (key.status === 'rotated') {
      throw new DomainError(
        'state_conflict',
        { current_state: 'rotated', rotated_to: key.rotatedTo },
        'The key was rotated and is invalid. Revoke the key that took its place.',
      );
    }
    const isWorkingFullKey = key.scope === 'full' && apiKeyStatus(key, now) === 'active';
    if (isWorkingFullKey && !(await hasOtherFullKey(tx, caller.orgId, keyId, now)))
      throw new DomainError('last_full_key');
    return await revokeApiKey(tx, key, now);
  });
}

function requireScope(caller: Principal, scope: Scope): void {
  if (!scopeCovers(caller.scope, scope)) throw new DomainError('scope_insufficient', { required_scope: scope });
}

function requireOwnOrganization(caller: Principal, orgId: string): void {
  if (orgId !== caller.orgId) throw new DomainError('not_found');
}

/** The key was valid when the request came; under the organization's lock it must be so still. */
async function requireValidCaller(tx: Tx, caller: Principal, now: Date): Promise<void> {
  const key = await getApiKey(tx, caller.orgId, caller.keyId);
  if (apiKeyStatus(key, now) !== 'active') throw new DomainError('credential_invalid');
}
