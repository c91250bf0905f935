/** Requests for a new key of an organization, under its row's lock. */
import { and, desc, eq, gt, isNull } from 'drizzle-orm';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { keyReissues } from '../schema/api-key.ts';

type KeyReissue = typeof keyReissues.$inferSelect;

/** The request that can be confirmed at `at`. */
export async function findOpenKeyReissue(tx: Tx, orgId: string, at: Date): Promise<KeyReissue | undefined> {
  const [row] = await tx
    .select()
    .from(keyReissues)
    .where(and(eq(keyReissues.orgId, orgId), isNull(keyReissues.confirmedBy), gt(keyReissues.expiresAt, at)))
    .orderBy(desc(keyReissues.requestedAt))
    .limit(1);
  return row;
}

export async function insertKeyReissue(
  tx: Tx,
  request: Omit<KeyReissue, 'reissueId' | 'confirmedBy' | 'keyId'>,
): Promise<void> {
  await tx.insert(keyReissues).values({ ...request, reissueId: newId() });
}

export async function confirmKeyReissue(
  tx: Tx,
  reissueId: string,
  confirmed: { readonly confirmedBy: string; readonly keyId: string },
): Promise<void> {
  await tx.update(keyReissues).set(confirmed).where(eq(keyReissues.reissueId, reissueId));
}
