/**
 * Public tokens that were issued with a link token (contract §10). Only their hashes are stored. A token without a row is
 * refused: it has expired, or was never issued.
 */
import { createHash } from 'node:crypto';
import { and, eq, gt, isNull, sql } from 'drizzle-orm';
import type { Queryable } from '../client.ts';
import { banklinkTokens } from '../schema/banklink.ts';
import { deleteExpiredRows } from './retention.ts';

const hashOf = (publicToken: string): Buffer => createHash('sha256').update(publicToken).digest();

export type NewBanklinkToken = {
  readonly publicToken: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
};

/** Stores the hash of a token that was issued. */
export async function insertBanklinkToken(
  db: Queryable,
  orgId: string,
  { publicToken, ...token }: NewBanklinkToken,
): Promise<void> {
  await db.insert(banklinkTokens).values({ ...token, orgId, tokenHash: hashOf(publicToken) });
}

/**
 * Exchanges a public token.
 *
 * @returns whether it is the first exchange by the organization that the token was issued to, before it expires
 */
export async function exchangeBanklinkToken(
  db: Queryable,
  orgId: string,
  publicToken: string,
  at: Date,
): Promise<boolean> {
  const exchanged = await db
    .update(banklinkTokens)
    .set({ exchangedAt: at })
    .where(
      and(
        eq(banklinkTokens.tokenHash, hashOf(publicToken)),
        eq(banklinkTokens.orgId, orgId),
        isNull(banklinkTokens.exchangedAt),
        gt(banklinkTokens.expiresAt, at),
      ),
    )
    .returning({ orgId: banklinkTokens.orgId });
  return exchanged.length === 1;
}

/** Deletes tokens that have expired, a bounded number of them. @returns how many */
export const deleteExpiredBanklinkTokens = (db: Queryable): Promise<number> =>
  deleteExpiredRows(db, banklinkTokens, sql`${banklinkTokens.expiresAt} <= now()`);
