/** Public tokens of bank linking. Their hashes alone are kept; rows stay, so that a used token is never new again. */
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
 * @returns `exchanged` for one that was issued to this organization, once and in time; `refused` for every other one
 *   that was issued; `not_issued` for one that never was
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
