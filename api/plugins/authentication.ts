/**
 * Authenticates and authorizes before a body is read (contract §2: 401 → 403 → 422). Partners send an API key,
 * consumers (contract §12) the bearer token of a session. No route takes both: a key opens no consumer operation, and a
 * session no partner operation. Every invalid key gets one and the same answer, and so does every invalid session.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { findActiveApiKey, touchApiKey } from '../../db/queries/api-key.ts';
import { findSession } from '../../db/queries/consumer.ts';
import { DomainError } from '../../domain/error.ts';
import { environmentName } from '../../domain/runtime.ts';
import { scopeCovers } from '../../domain/scope.ts';
import type { ApiDeps } from '../deps.ts';
import { hashApiKey, isWellFormedApiKey } from '../http/api-key.ts';
import { headerLines } from '../http/header-lines.ts';
import { InvalidRequestError } from '../http/request-fault.ts';
import { bearerToken, hashSessionToken } from '../http/session-token.ts';
import type { ConsumerPrincipal, Principal } from '../route-config.ts';
import { AUTHORIZATION_LENGTH_MAX } from '../schemas/session.ts';

/** How far `last_used_at` of a key may lag behind. */
const TOUCH_INTERVAL_MS = 60_000;

export const authentication = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  app.decorateRequest('principal', null);
  app.decorateRequest('consumer', null);
  app.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.access;
    if (access?.auth === 'api_key') {
      const principal = await authenticateKey(deps, request);
      if (!scopeCovers(principal.scope, access.scope))
        throw new DomainError('scope_insufficient', { required_scope: access.scope });
      request.principal = principal;
    }
    if (access?.auth === 'optional_api_key' && headerLines(request.raw, 'x-api-key').length > 0)
      request.principal = await authenticateKey(deps, request);
    if (access?.auth === 'session') request.consumer = await authenticateSession(deps, request);
  });
  app.addHook('preValidation', async (request) => {
    if (request.principal && namesOtherOrganization(request.body, request.principal.orgId))
      throw new DomainError('organization_mismatch');
  });
});

/** @throws DomainError `credential_missing`, `credential_ambiguous`, `credential_invalid` */
async function authenticateKey(deps: ApiDeps, request: FastifyRequest): Promise<Principal> {
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
      request.log.warn({ err: error }, 'the last use of an API key could not be stored'),
    );
  }
  return { orgId: key.orgId, keyId: key.keyId, scope: key.scope };
}

/**
 * @throws DomainError `credential_missing`, `credential_invalid`
 * @throws InvalidRequestError for a header that is too long (specification, Limits)
 */
async function authenticateSession(deps: ApiDeps, request: FastifyRequest): Promise<ConsumerPrincipal> {
  const [header = '', ...more] = headerLines(request.raw, 'authorization');
  if (header.length > AUTHORIZATION_LENGTH_MAX) throw new InvalidRequestError([TOO_LONG]);
  if (header === '' && more.length === 0)
    throw new DomainError(
      'credential_missing',
      {},
      'Send the session in an Authorization header: Bearer <access_token>.',
    );
  const token = more.length === 0 ? bearerToken(header) : undefined;
  const hashes =
    token === undefined ? undefined : deps.config.apiKeyPeppers.map((pepper) => hashSessionToken(pepper, token));
  const found = hashes && (await findSession(deps.db, hashes, environmentName(deps.runtime), deps.now()));
  if (!found)
    throw new DomainError(
      'credential_invalid',
      {},
      'The session is not valid. It may have expired or been ended; sign in again.',
    );
  return { orgId: found.consumer.consumerId, ...found };
}

const TOO_LONG = {
  loc: ['header', 'authorization'],
  msg: `String should have at most ${AUTHORIZATION_LENGTH_MAX} characters`,
  type: 'string_too_long',
};

function namesOtherOrganization(body: unknown, orgId: string): boolean {
  return (
    typeof body === 'object' &&
    body !== null &&
    'org_id' in body &&
    typeof body.org_id === 'string' &&
    body.org_id !== orgId
  );
}
