/** Simulated wallets (contract §13). Nothing changes one after its creation. */
import type { Wallet } from '../../domain/wallet.ts';
import type { Answer } from '../queries/idempotency-key.ts';
import { takeQuota } from '../queries/quota.ts';
import { insertWallet } from '../queries/wallet.ts';
import { type Creation, type CreationDeps, commitCreation } from './creation.ts';

/** @throws DomainError `idempotency_key_reused`, `quota_exceeded` */
export async function createWallet(deps: CreationDeps, wallet: Wallet, creation: Creation<Wallet>): Promise<Answer> {
  return await commitCreation(deps, { ...creation, name: 'wallet.create' }, async (tx) => {
    await insertWallet(tx, wallet);
    await takeQuota(tx, wallet.orgId, 'wallets');
    return { id: wallet.walletId, created: wallet };
  });
}
