import { index, integer, jsonb, pgTable, text } from 'drizzle-orm/pg-core';
import type { WalletNetwork, WalletSigner } from '../../domain/wallet.ts';
import { moment, reference } from './column.ts';
import { organizations } from './organization.ts';

/** Simulated multisig wallets; a trigger refuses any change. */
export const wallets = pgTable(
  'wallets',
  {
    walletId: text('wallet_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    name: text('name').notNull(),
    network: text('network').$type<WalletNetwork>().notNull(),
    address: text('address').notNull(),
    signers: jsonb('signers').$type<readonly WalletSigner[]>().notNull(),
    threshold: integer('threshold').notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [index('wallets_org').on(table.orgId, table.createdAt, table.walletId)],
);
