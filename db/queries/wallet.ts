/** Simulated multisig wallets (contract §13). */
import { and, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import type { Wallet } from '../../domain/wallet.ts';
import type { Database, Queryable } from '../client.ts';
import { wallets } from '../schema/wallet.ts';
import { type List, pageOf, readPage } from './page.ts';

export async function insertWallet(db: Queryable, wallet: Wallet): Promise<void> {
  await db.insert(wallets).values(wallet);
}

/** @throws DomainError `not_found`, for another organization's wallet as well */
export async function getWallet(db: Queryable, orgId: string, walletId: string): Promise<Wallet> {
  const [row] = await db
    .select()
    .from(wallets)
    .where(and(eq(wallets.orgId, orgId), eq(wallets.walletId, walletId)))
    .limit(1);
  if (!row) throw new DomainError('not_found');
  return row;
}

/** Newest first. */
export async function listWallets(db: Database, orgId: string, page: Page): Promise<Paged<Wallet>> {
  const list: List<Wallet> = {
    table: wallets,
    where: eq(wallets.orgId, orgId),
    createdAt: wallets.createdAt,
    id: wallets.walletId,
    cursorOf: ({ createdAt: at, walletId: id }) => ({ at, id }),
  };
  return await readPage(db, list, page, pageOf(db.select().from(wallets).$dynamic()));
}
