/** Bank linking (contract §10), simulated. An access token pays ACH settlements of the organization that linked it. */
import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { sealAccessToken } from '../../db/banklink-token.ts';
import { exchangeBanklinkToken, insertBanklinkToken } from '../../db/queries/banklink.ts';
import { LINK_TOKEN_LIFETIME_MS, linkedAccount, PUBLIC_TOKEN_PREFIX } from '../../domain/banklink.ts';
import { ValidationError } from '../../domain/error.ts';
import { environmentName } from '../../domain/runtime.ts';
import type { ApiDeps } from '../deps.ts';
import { principalOf } from '../route-config.ts';
import { ExchangeRequest, ExchangeResponse, LinkTokenRequest, LinkTokenResponse } from '../schemas/banklink.ts';

export const banklinkRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v2/banklink/link-token',
      {
        config: { access: { auth: 'api_key', scope: 'settle', remote: 'remote_environment' } },
        schema: {
          tags: ['Bank linking'],
          operationId: 'createLinkToken',
          summary: 'Start linking a bank account',
          description:
            'Simulated. The answer also contains the public token that a linking widget would return. It can be ' +
            'exchanged once, within 30 minutes.',
          body: LinkTokenRequest,
          response: { 200: LinkTokenResponse },
        },
      },
      async (request) => {
        const createdAt = deps.now();
        const expiresAt = new Date(createdAt.getTime() + LINK_TOKEN_LIFETIME_MS);
        const publicToken = `${PUBLIC_TOKEN_PREFIX}${randomUUID()}`;
        const userReference = request.body?.user_reference ?? null;
        await insertBanklinkToken(deps.db, principalOf(request).orgId, {
          publicToken,
          userReference,
          createdAt,
          expiresAt,
        });
        return {
          link_token: `link-sandbox-${randomUUID()}`,
          sandbox_public_token: publicToken,
          expires_at: expiresAt.toISOString(),
          environment: environmentName(deps.runtime),
          simulation: true as const,
        };
      },
    );

    app.post(
      '/v2/banklink/exchange',
      {
        config: { access: { auth: 'api_key', scope: 'settle', remote: 'remote_environment' } },
        schema: {
          tags: ['Bank linking'],
          operationId: 'exchangePublicToken',
          summary: 'Exchange a public token for an access token',
          description:
            'A `sandbox_public_token` can be exchanged once. Any other `public-sandbox-…` token names a test ' +
            'account: with `public-sandbox-return` the debit is returned (R01), with `public-sandbox-manual` the ' +
            'payment waits, with every other one the account pays.',
          body: ExchangeRequest,
          response: { 200: ExchangeResponse },
        },
      },
      async (request) => {
        const { orgId } = principalOf(request);
        const { public_token: publicToken } = request.body;
        const outcome = await exchangeBanklinkToken(deps.db, orgId, publicToken, deps.now());
        if (outcome === 'refused')
          throw new ValidationError([
            { field: 'public_token', rule: 'has expired, was exchanged before, or is not yours' },
          ]);
        return {
          access_token: sealAccessToken(deps.sealer, orgId, publicToken),
          account: linkedAccount(publicToken),
          simulation: true as const,
        };
      },
    );
  };
