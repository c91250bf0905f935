import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { createWallet } from '../../db/commands/wallet.ts';
import { newId } from '../../db/id.ts';
import { getWallet, listWallets } from '../../db/queries/wallet.ts';
import { walletResource } from '../../domain/resource/wallet.ts';
import type { Wallet } from '../../domain/wallet.ts';
import type { ApiDeps } from '../deps.ts';
import { CREATES, keyedRequest, sendAnswer } from '../http/idempotent-answer.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { OptionalIdempotencyKey } from '../schemas/idempotency.ts';
import { PageQuery } from '../schemas/page.ts';
import { CreateWalletRequest, WalletPath, WalletResponse } from '../schemas/wallet.ts';
import { walletAddressOf } from '../schemas/wallet-address.ts';

const TAGS = ['Wallets and fees'];

/** Simulated multisig wallets (contract §13). A wallet is only metadata: it has no keys and is on no chain. */
export const walletRoutes =
  (deps: ApiDeps): FastifyPluginAsyncZodOpenApi =>
  async (app) => {
    app.post(
      '/v1/wallets',
      {
        config: {
          access: {
            auth: 'api_key',
            scope: 'settle',
            remote: 'local_sandbox_only',
            refusals: CREATES.refusals,
            headers: ['Location', ...CREATES.headers],
          },
        },
        schema: {
          tags: TAGS,
          operationId: 'createWallet',
          summary: 'Create a simulated multisig wallet',
          description:
            'Without an `Idempotency-Key` every request creates a new wallet. Wallets with the same definition have the same address.',
          headers: OptionalIdempotencyKey,
          body: CreateWalletRequest,
          response: { 201: WalletResponse },
        },
      },
      async (request, reply) => {
        const { name, signers, threshold, network = 'ethereum' } = request.body;
        const labelled = signers.map(({ address, label = null }) => ({ address, label }));
        const { orgId } = principalOf(request);
        const definition = { orgId, name, network, signers: labelled, threshold };
        const wallet: Wallet = {
          ...definition,
          walletId: newId(),
          address: walletAddressOf(definition),
          createdAt: deps.now(),
        };
        const creation = { keyed: keyedRequest(request, orgId), status: 201, show: walletResource };
        const answer = await createWallet(deps, wallet, creation);
        return sendAnswer(reply, answer, `/v1/wallets/${answer.resourceId}`);
      },
    );

    app.get(
      '/v1/wallets',
      {
        config: { access: { auth: 'api_key', scope: 'read', isLowPriority: true } },
        schema: {
          tags: TAGS,
          operationId: 'listWallets',
          summary: 'List the wallets',
          querystring: PageQuery,
          response: { 200: pageOf(WalletResponse, 'One page of wallets, newest first.') },
        },
      },
      async (request, reply) => {
        const read = () => listWallets(deps.db, principalOf(request).orgId, request.query);
        return answerPage(request, reply, { page: request.query, read, show: walletResource });
      },
    );

    app.get(
      '/v1/wallets/:wallet_id',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'getWallet',
          summary: 'Read a wallet',
          params: WalletPath,
          response: { 200: WalletResponse },
        },
      },
      async (request) => walletResource(await getWallet(deps.db, principalOf(request).orgId, request.params.wallet_id)),
    );
  };
