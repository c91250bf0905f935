import type { FastifyPluginAsyncZodOpenApi } from 'fastify-zod-openapi';
import { newId } from '../../db/id.ts';
import { getWallet, insertWallet, listWallets } from '../../db/queries/wallet.ts';
import { walletResource } from '../../domain/resource/wallet.ts';
import type { Wallet } from '../../domain/wallet.ts';
import type { ApiDeps } from '../deps.ts';
import { answerPage, pageOf } from '../http/pagination.ts';
import { principalOf } from '../route-config.ts';
import { PageQuery } from '../schemas/common.ts';
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
        config: { access: { auth: 'api_key', scope: 'settle', remote: 'local_sandbox_only', headers: ['Location'] } },
        schema: {
          tags: TAGS,
          operationId: 'createWallet',
          summary: 'Create a simulated multisig wallet',
          description: 'Every request creates a new wallet. Wallets with the same definition have the same address.',
          body: CreateWalletRequest,
          response: { 201: WalletResponse },
        },
      },
      async (request, reply) => {
        const { name, signers, threshold, network = 'ethereum' } = request.body;
        const labelled = signers.map(({ address, label = null }) => ({ address, label }));
        const definition = { orgId: principalOf(request).orgId, name, network, signers: labelled, threshold };
        const wallet: Wallet = {
          ...definition,
          walletId: newId(),
          address: walletAddressOf(definition),
          createdAt: deps.now(),
        };
        await insertWallet(deps.db, wallet);
        return reply.code(201).header('Location', `/v1/wallets/${wallet.walletId}`).send(walletResource(wallet));
      },
    );

    app.get(
      '/v1/wallets',
      {
        config: { access: { auth: 'api_key', scope: 'read' } },
        schema: {
          tags: TAGS,
          operationId: 'listWallets',
          summary: 'List the wallets',
          querystring: PageQuery,
          response: { 200: pageOf(WalletResponse, 'One page of wallets, newest first.') },
        },
      },
      async (request, reply) => {
        const paged = await listWallets(deps.db, principalOf(request).orgId, request.query);
        return answerPage(request, reply, { page: request.query, paged, show: walletResource });
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
