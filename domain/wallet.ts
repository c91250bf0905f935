/** Simulated multisig wallets (contract §13). Nothing is sent to a chain. */
export const WALLET_NETWORKS = ['ethereum', 'polygon', 'base'] as const;
export type WalletNetwork = (typeof WALLET_NETWORKS)[number];

export const WALLET_LIMITS = { nameLengthMax: 80, signersMax: 10, labelLengthMax: 80 } as const;

/** `address` is as it was submitted: with a valid checksum, or without one. */
export type WalletSigner = { readonly address: string; readonly label: string | null };

export type Wallet = {
  readonly walletId: string;
  readonly orgId: string;
  readonly name: string;
  readonly network: WalletNetwork;
  /** Derived from organization, signers, threshold, network and name. */
  readonly address: string;
  readonly signers: readonly WalletSigner[];
  /** How many signers must agree. */
  readonly threshold: number;
  readonly createdAt: Date;
};
