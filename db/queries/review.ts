/** What operators ask for about a payout in review, under the settlement's row lock. */
import { eq, inArray } from 'drizzle-orm';
import type { ReviewRequest } from '../../domain/review.ts';
import type { Queryable, Tx } from '../client.ts';
import { reviewRequests } from '../schema/review.ts';

export async function findReviewRequest(db: Queryable, settlementId: string): Promise<ReviewRequest | undefined> {
  const [row] = await db.select().from(reviewRequests).where(eq(reviewRequests.settlementId, settlementId)).limit(1);
  if (!row) return undefined;
  const { settlementId: _id, ...request } = row;
  return request;
}

/** Those of these settlements, by settlement. */
export async function listReviewRequests(
  db: Queryable,
  settlementIds: readonly string[],
): Promise<ReadonlyMap<string, ReviewRequest>> {
  const rows = await db
    .select()
    .from(reviewRequests)
    .where(inArray(reviewRequests.settlementId, [...settlementIds]));
  return new Map(rows.map(({ settlementId, ...request }) => [settlementId, request]));
}

export async function storeReviewRequest(tx: Tx, settlementId: string, request: ReviewRequest): Promise<void> {
  await tx
    .insert(reviewRequests)
    .values({ settlementId, ...request })
    .onConflictDoUpdate({ target: reviewRequests.settlementId, set: request });
}
