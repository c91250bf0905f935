/**
 * Authenticates and authorizes before a body is read (contract §2: 401 → 403 → 422). One body for every key that
 * is not valid, whatever is wrong with it.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { findActiveApiKey, touchApiKey } from '../../db/queries/api-key.ts';
import { DomainError } from '../../domain/error.ts';
import { environmentName } from '../../domain/runtime.ts';
import { scopeCovers } from '../../domain/scope.ts';
import type { ApiDeps } from '../deps.ts';
import { hashApiKey, isWellFormedApiKey } from '../http/credential.ts';
import { headerLines } from '../http/header-lines.ts';
import type { Principal } from '../route-config.ts';
import { authenticateSession } from '../session.ts';

/** A key's `last_used_at` is at most this much behind. */
const TOUCH_INTERVAL_MS = 60_000;

export const authentication = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  app.decorateRequest('principal', null);
  app.decorateRequest('consumer', null);
  app.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.access;
    if (access?.auth === 'api_key') {
      const principal = await authenticate(deps, request);
      if (!scopeCovers(principal.scope, access.scope))
        throw new DomainError('scope_insufficient', { required_scope: access.scope });
      request.principal = principal;
    }
    if (access?.auth === 'optional_api_key' && headerLines(request.raw, 'x-api-key').length > 0)
      request.principal = await authenticate(deps, request);
    if (access?.auth === 'session') request.consumer = await authenticateSession(deps, request);
  });
  app.addHook('preValidation', async (request) => {
    if (request.principal && namesOtherOrganization(request.body, request.principal.orgId))
      throw new DomainError('organization_mismatch');
  });
});

async function authenticate(deps: ApiDeps, request: FastifyRequest): Promise<Principal> {
  const lines = headerLines(request.raw, 'x-api-key');
  const [raw = ''] = lines;
  if (lines.length > 1 || raw.includes(',')) throw new DomainError('credential_ambiguous');
  if (raw === '') throw new DomainError('credential_missing', {}, 'Send your API key in one X-API-Key header.');
  const { runtime } = deps;
  const { apiKeyPeppers } = deps.config;
  if (!isWellFormedApiKey(raw, runtime)) throw new DomainError('credential_invalid');
  const now = deps.now();
  const hashed = apiKeyPeppers.map((pepper) => ({ keyHash: hashApiKey(pepper, raw), pepperId: pepper.id }));
  const key = await findActiveApiKey(
    deps.db,
    hashed.map(({ keyHash }) => keyHash),
    environmentName(runtime),
  );
  if (!key || (key.expiresAt !== null && key.expiresAt <= now)) throw new DomainError('credential_invalid');
  if (key.lastUsedAt === null || now.getTime() - key.lastUsedAt.getTime() > TOUCH_INTERVAL_MS) {
    touchApiKey(deps.db, key, now, hashed[0]).catch((error: unknown) =>
      request.log.warn({ err: error }, 'could not note the use of a key'),
    );
  }
  return { orgId: key.orgId, keyId: key.keyId, scope: key.scope };
}

function namesOtherOrganization(body: unknown, orgId: string): boolean {
  return (
    typeof body === 'object' &&
    body !== null &&
    'org_id' in body &&
    typeof body.org_id === 'string' &&
    body.org_id !== orgId
  );
}
