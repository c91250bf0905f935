/**
 * Public tokens of bank linking (contract §10). Only their hashes are stored. Rows stay, so a used token stays used.
 */
import { createHash } from 'node:crypto';
import { and, eq, gt, isNull } from 'drizzle-orm';
import type { Queryable } from '../client.ts';
import { banklinkTokens } from '../schema/banklink.ts';

const hashOf = (publicToken: string): Buffer => createHash('sha256').update(publicToken).digest();

export type NewBanklinkToken = {
  readonly publicToken: string;
  readonly userReference: string | null;
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
 * @returns `exchanged` at the first exchange by the organization that it was issued to, before it expires; `refused`
 *   for every other issued token; `not_issued` for an unknown one
 */
export async function exchangeBanklinkToken(
  db: Queryable,
  orgId: string,
  publicToken: string,
  at: Date,
): Promise<'exchanged' | 'refused' | 'not_issued'> {
  const tokenHash = hashOf(publicToken);
  const issued = eq(banklinkTokens.tokenHash, tokenHash);
  const exchanged = await db
    .update(banklinkTokens)
    .set({ exchangedAt: at })
    .where(
      and(
        issued,
        eq(banklinkTokens.orgId, orgId),
        isNull(banklinkTokens.exchangedAt),
        gt(banklinkTokens.expiresAt, at),
      ),
    )
    .returning({ orgId: banklinkTokens.orgId });
  if (exchanged.length === 1) return 'exchanged';
  const known = await db.select({ orgId: banklinkTokens.orgId }).from(banklinkTokens).where(issued).limit(1);
  return known.length === 1 ? 'refused' : 'not_issued';
}
