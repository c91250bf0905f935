/**
 * Authenticates and authorizes before a body is read (contract §2: 401 → 403 → 422). Partners send an API key,
 * consumers (contract §12) the bearer token of a session. No route takes both: a key opens no consumer operation, and a
 * session no partner operation. Every invalid key gets the same answer, and so does every invalid session. The
 * statement that finds the credential also counts the request for its organization; that of a key counts it for its
 * address too. An address that fails too often is refused before the database is asked, and before the body of a
 * provider's event is read.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fp from 'fastify-plugin';
import { touchApiKey } from '../../db/queries/api-key.ts';
import { authenticateConsumer } from '../../db/queries/consumer.ts';
import type { KeyCaller, Presented } from '../../db/queries/key-caller.ts';
import { addressTenant, asTenant } from '../../db/tenant.ts';
import { DomainError, type ErrorCode } from '../../domain/error.ts';
import { budgetsOf, budgetsOfOrganization, type Counted, isWithin } from '../../domain/rate-limit.ts';
import { environmentName } from '../../domain/runtime.ts';
import { scopeCovers } from '../../domain/scope.ts';
import { hashApiKey, isWellFormedApiKey } from '../../process/api-key.ts';
import type { ApiDeps } from '../deps.ts';
import { createAddressCount } from '../http/address-count.ts';
import { headerLines } from '../http/header-lines.ts';
import { createKeyLookup } from '../http/key-lookup.ts';
import { requireBudget } from '../http/rate-limit.ts';
import { createRecentCredentials, credentialDigest } from '../http/recent-credential.ts';
import { InvalidRequestError } from '../http/request-fault.ts';
import { bearerToken, hashSessionToken } from '../http/session-token.ts';
import { type ConsumerPrincipal, costOf, isCommand, type Principal, type RouteConfig } from '../route-config.ts';
import { AUTHORIZATION_LENGTH_MAX } from '../schemas/session.ts';

/** Refusals that count as a failed authentication of the client's address. A 403 is a valid caller's. */
const FAILURES: readonly ErrorCode[] = [
  'credential_missing',
  'credential_ambiguous',
  'credential_invalid',
  'signature_invalid',
];

export const authentication = fp(async (app: FastifyInstance, { deps }: { deps: ApiDeps }) => {
  app.decorateRequest('principal', null);
  app.decorateRequest('consumer', null);
  const budgets = budgetsOf(deps.config.rateLimitPerMinute);
  const failures = createAddressCount(budgets.failure);
  const recent = createRecentCredentials();
  const lookUp = createKeyLookup(deps, budgets.default.windowSeconds);
  app.addHook('onRequest', async (request, reply) => {
    const access = request.routeOptions.config.access;
    if (!access || !takesCredential(access, request)) return;
    const caller = failingCaller(access, request);
    const failed = failures.of(caller);
    const credential = digestOf(access, request);
    if (failed && failed.used >= budgets.failure.quota && !recent.has(credential))
      await requireBudget(reply, budgets.failure, failures.add(caller), { detail: TOO_MANY_FAILURES });
    if (access.auth === 'signature') return;
    const cost = costOf(access, request);
    if (access.auth === 'session') {
      const { windowSeconds } = budgets.default;
      const { counted, isSuspended, ...consumer } = await authenticateSession(deps, request, { windowSeconds, cost });
      request.consumer = consumer;
      recent.add(credential);
      await requireBudget(reply, budgets.default, counted, { cost });
      if (isSuspended) refuseCommand(request, access);
      return;
    }
    const { counted, isSuspended, ...principal } = await authenticateKey(deps, request, async (key) => {
      const presented = { ...key, cost };
      const found = await lookUp.find(presented, recent.has(credential));
      const repeated = found ? undefined : repeatedRotation(access, request);
      return repeated ? await lookUp.findRotated(presented, repeated) : found;
    });
    request.principal = principal;
    recent.add(credential);
    const own = budgetsOfOrganization(principal.allowance, deps.config.rateLimitPerMinute);
    if (!isWithin(own.address, counted.address, cost))
      await requireBudget(reply, own.address, counted.address, { cost, detail: TOO_MANY_OF_ADDRESS });
    await requireBudget(reply, own.default, counted.organization, { cost });
    if (access.auth === 'api_key' && !scopeCovers(principal.scope, access.scope))
      throw new DomainError('scope_insufficient', { required_scope: access.scope });
    if (isSuspended) refuseCommand(request, access);
  });
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.principal && namesOtherOrganization(request.body, request.principal.orgId))
      throw new DomainError('organization_mismatch');
    done();
  });
  app.addHook('onError', async (request, _reply, error) => {
    const access = request.routeOptions.config.access;
    if (!access || !isFailure(error) || !takesCredential(access, request)) return;
    failures.add(failingCaller(access, request));
    recent.delete(digestOf(access, request));
  });
});

/** A session header that is too long is refused as invalid input. It is a failed authentication as well. */
const isFailure = (error: unknown): boolean =>
  error instanceof DomainError
    ? FAILURES.includes(error.code)
    : error instanceof InvalidRequestError && error.faults.includes(TOO_LONG);

/** @throws DomainError `organization_suspended`, unless the operation only reads */
function refuseCommand({ method }: FastifyRequest, access: RouteConfig): void {
  if (isCommand(method, access)) throw new DomainError('organization_suspended');
}

const TOO_MANY_FAILURES =
  'Too many requests from this address had no valid credential. Wait for the time in the Retry-After header.';

const TOO_MANY_OF_ADDRESS =
  'The organizations behind this address sent too many requests together. Wait for the time in the Retry-After header.';

/** Whether the request must prove who sends it. */
export const takesCredential = ({ auth }: RouteConfig, { raw }: FastifyRequest): boolean =>
  auth === 'optional_api_key' ? headerLines(raw, 'x-api-key').length > 0 : auth !== 'none';

/**
 * Keys and sessions of an address count together. The events of each provider count for themselves: neither keys nor
 * another provider stop them.
 */
const failingCaller = ({ auth }: RouteConfig, { routeOptions, clientAddress }: FastifyRequest): string =>
  auth === 'signature' ? `${routeOptions.url} ${clientAddress.limitKey}` : clientAddress.limitKey;

const digestOf = ({ auth }: RouteConfig, { raw, clientAddress }: FastifyRequest): string =>
  auth === 'signature'
    ? ''
    : credentialDigest(clientAddress.limitKey, headerLines(raw, auth === 'session' ? 'authorization' : 'x-api-key'));

/** What a key that has rotated itself would repeat by this request. */
function repeatedRotation(
  { rotates }: RouteConfig,
  request: FastifyRequest,
): { readonly keyId: string; readonly idempotencyKey: string } | undefined {
  const keyId = rotates?.(request);
  const [idempotencyKey] = headerLines(request.raw, 'idempotency-key');
  return keyId !== undefined && idempotencyKey !== undefined ? { keyId, idempotencyKey } : undefined;
}

/** What is known of a caller only until it is admitted. */
type Authenticated<Count> = { readonly counted: Count; readonly isSuspended: boolean };

type RequestCount = Parameters<typeof authenticateConsumer>[3];

/** @throws DomainError `credential_missing`, `credential_ambiguous`, `credential_invalid` */
async function authenticateKey(
  deps: ApiDeps,
  request: FastifyRequest,
  lookUp: (presented: Omit<Presented, 'cost'>) => Promise<KeyCaller | undefined>,
): Promise<Principal & Authenticated<NonNullable<KeyCaller['counted']>>> {
  const lines = headerLines(request.raw, 'x-api-key');
  const [raw = ''] = lines;
  if (lines.length > 1 || raw.includes(',')) throw new DomainError('credential_ambiguous');
  if (raw === '') throw new DomainError('credential_missing', {}, 'Send your API key in one X-API-Key header.');
  const { runtime } = deps;
  const { apiKeyPeppers } = deps.config;
  if (!isWellFormedApiKey(raw, runtime)) throw new DomainError('credential_invalid');
  const hashed = apiKeyPeppers.map((pepper) => ({ keyHash: hashApiKey(pepper, raw), pepperId: pepper.id }));
  const key = await lookUp({
    keyHashes: hashed.map(({ keyHash }) => keyHash),
    address: request.clientAddress.exact,
    limitKey: request.clientAddress.limitKey,
  });
  if (!key) throw new DomainError('credential_invalid');
  const { isTouchDue, counted, ...caller } = key;
  const from = request.clientAddress.logged;
  if (!counted) {
    // The answer is that of an unknown key: the caller may have stolen this one.
    request.log.warn({ key_id: key.keyId, org_id: key.orgId, client: from }, 'an API key does not allow this address');
    throw new DomainError('credential_invalid');
  }
  if (isTouchDue) {
    const touch = () => touchApiKey(deps.db, key, { at: deps.now(), from }, hashed[0]);
    asTenant(key.orgId, touch).catch((error: unknown) =>
      request.log.warn({ err: error }, 'the last use of an API key could not be stored'),
    );
  }
  return { ...caller, counted };
}

/**
 * @throws DomainError `credential_missing`, `credential_invalid`
 * @throws InvalidRequestError for a header that is too long
 */
async function authenticateSession(
  deps: ApiDeps,
  request: FastifyRequest,
  count: RequestCount,
): Promise<ConsumerPrincipal & Authenticated<Counted>> {
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
  const valid = { environment: environmentName(deps.runtime), at: deps.now() };
  const lookUp = hashes && (() => authenticateConsumer(deps.db, hashes, valid, count));
  const found = lookUp && (await asTenant(addressTenant(request.clientAddress.limitKey), lookUp));
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
