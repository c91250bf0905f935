/**
 * Bank linking (contract §10, §12), simulated. An access token pays ACH settlements of the organization, or transfers
 * of the consumer, that linked it.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import type { z } from 'zod';
import { sealAccessToken } from '../../db/banklink-token.ts';
import { exchangeBanklinkToken, insertBanklinkToken } from '../../db/queries/banklink.ts';
import { ISSUED_TOKEN_PREFIX, LINK_TOKEN_LIFETIME_MS, linkedAccount } from '../../domain/banklink.ts';
import { ValidationError } from '../../domain/error.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { consumerOf, principalOf } from '../route-config.ts';
import { ExchangeRequest, ExchangeResponse, LinkTokenRequest, LinkTokenResponse } from '../schemas/banklink.ts';
import { SessionHeader } from '../schemas/session.ts';

const LINK_TOKEN = {
  summary: 'Start linking a bank account',
  description:
    'Simulated. The answer also contains the public token that a linking widget would return. It can be exchanged once, ' +
    'within 30 minutes.',
  body: LinkTokenRequest,
  response: { 200: LinkTokenResponse },
};
const EXCHANGE = {
  summary: 'Exchange a public token for an access token',
  description:
    'A `sandbox_public_token` can be exchanged once. Any other `public-sandbox-…` token names a test account: with ' +
    '`public-sandbox-return` the debit is returned (R01), with `public-sandbox-manual` the payment waits, with every ' +
    'other one the account pays.',
  body: ExchangeRequest,
  response: { 200: ExchangeResponse },
};

const PARTNER = { access: { auth: 'api_key', scope: 'settle', remote: 'remote_environment' } } as const;
const CONSUMER = { access: { auth: 'session', remote: 'remote_environment' } } as const;

export const banklinkRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/banklink/link-token',
      { config: PARTNER, schema: { tags: ['Bank linking'], operationId: 'createLinkToken', ...LINK_TOKEN } },
      async (request) => createLinkToken(deps, principalOf(request).orgId),
    );

    app.post(
      '/v2/banklink/exchange',
      { config: PARTNER, schema: { tags: ['Bank linking'], operationId: 'exchangePublicToken', ...EXCHANGE } },
      async (request) => exchangePublicToken(deps, principalOf(request).orgId, request.body),
    );

    app.post(
      '/consumer/banklink/link-token',
      {
        config: CONSUMER,
        schema: { tags: ['Consumer'], operationId: 'createConsumerLinkToken', headers: SessionHeader, ...LINK_TOKEN },
      },
      async (request) => createLinkToken(deps, consumerOf(request).orgId),
    );

    app.post(
      '/consumer/banklink/exchange',
      {
        config: CONSUMER,
        schema: { tags: ['Consumer'], operationId: 'exchangeConsumerPublicToken', headers: SessionHeader, ...EXCHANGE },
      },
      async (request) => exchangePublicToken(deps, consumerOf(request).orgId, request.body),
    );
  };

async function createLinkToken(deps: ApiDeps, orgId: string) {
  const createdAt = deps.now();
  const expiresAt = new Date(createdAt.getTime() + LINK_TOKEN_LIFETIME_MS);
  const publicToken = `${ISSUED_TOKEN_PREFIX}${randomUUID()}`;
  await insertBanklinkToken(deps.db, orgId, { publicToken, createdAt, expiresAt });
  return {
    link_token: `link-sandbox-${randomUUID()}`,
    sandbox_public_token: publicToken,
    expires_at: expiresAt.toISOString(),
    environment: environmentName(deps.runtime),
    simulation: true as const,
  };
}

/** @throws ValidationError on `public_token` */
async function exchangePublicToken(deps: ApiDeps, orgId: string, body: z.output<typeof ExchangeRequest>) {
  const { public_token: publicToken } = body;
  const isIssued = publicToken.startsWith(ISSUED_TOKEN_PREFIX);
  if (isIssued && !(await exchangeBanklinkToken(deps.db, orgId, publicToken, deps.now())))
    throw new ValidationError([{ field: 'public_token', rule: 'has expired, was exchanged before, or is not yours' }]);
  return {
    access_token: sealAccessToken(deps.sealer, orgId, publicToken),
    account: linkedAccount(publicToken),
    simulation: true as const,
  };
}
