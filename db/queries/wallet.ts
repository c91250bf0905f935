/** Simulated multisig wallets (contract §13). */
import { and, count, desc, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { Page, Paged } from '../../domain/page.ts';
import type { Wallet } from '../../domain/wallet.ts';
import type { Database, Queryable } from '../client.ts';
import { wallets } from '../schema/wallet.ts';

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
  const ofOrganization = eq(wallets.orgId, orgId);
  const [items, [total]] = await Promise.all([
    db
      .select()
      .from(wallets)
      .where(ofOrganization)
      .orderBy(desc(wallets.createdAt), desc(wallets.walletId))
      .limit(page.limit)
      .offset(page.offset),
    db.select({ count: count() }).from(wallets).where(ofOrganization),
  ]);
  return { items, total: total?.count ?? 0 };
}
