/** A simulated wallet as the API shows it (contract §13). */
import type { Wallet } from '../wallet.ts';

/** The fields of WalletResponse. */
export const walletResource = (wallet: Wallet) => ({
  wallet_id: wallet.walletId,
  org_id: wallet.orgId,
  name: wallet.name,
  network: wallet.network,
  address: wallet.address,
  signers: [...wallet.signers],
  threshold: wallet.threshold,
  type: 'multisig' as const,
  simulated: true as const,
  deployed: false as const,
  created_at: wallet.createdAt.toISOString(),
});
