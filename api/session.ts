/**
 * Authenticates consumers (contract §12): exactly one `Authorization` header with a session's bearer token. An API key is
 * no session, and a session opens no partner operation.
 */
import type { FastifyRequest } from 'fastify';
import { findSession } from '../db/queries/consumer.ts';
import { DomainError, ValidationError } from '../domain/error.ts';
import { environmentName } from '../domain/runtime.ts';
import type { ApiDeps } from './deps.ts';
import { headerLines } from './http/header-lines.ts';
import type { ConsumerPrincipal } from './route-config.ts';
import { AUTHORIZATION_LENGTH_MAX } from './schemas/session.ts';
import { bearerToken, hashSessionToken } from './session-token.ts';

/**
 * @throws DomainError `credential_missing`; `credential_invalid`, the same for every token that opens nothing
 * @throws ValidationError for a header that is longer than its form allows (specification, Limits)
 */
export async function authenticateSession(deps: ApiDeps, request: FastifyRequest): Promise<ConsumerPrincipal> {
  const [header = '', ...more] = headerLines(request.raw, 'authorization');
  if (header.length > AUTHORIZATION_LENGTH_MAX) throw new ValidationError([TOO_LONG]);
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
