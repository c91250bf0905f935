/** Counts the requests of each caller in fixed windows, across all processes. */
import { lt, sql } from 'drizzle-orm';
import type { Queryable } from '../client.ts';
import { rateLimits } from '../schema/rate-limit.ts';

/**
 * Counts a request; one statement.
 *
 * @param cost how many requests it counts as
 * @returns how much of the window's quota this caller has used, this request included
 */
export async function countRequest(db: Queryable, caller: string, windowStart: Date, cost: number): Promise<number> {
  const [row] = await db
    .insert(rateLimits)
    .values({ caller, windowStart, used: cost })
    .onConflictDoUpdate({
      target: rateLimits.caller,
      set: {
        windowStart,
        used: sql`CASE WHEN ${rateLimits.windowStart} = excluded.window_start THEN ${rateLimits.used} ELSE 0 END
          + excluded.used`,
      },
    })
    .returning({ used: rateLimits.used });
  return row?.used ?? cost;
}

/** Deletes the counters of windows from before this time. */
export async function deleteRateLimits(db: Queryable, before: Date): Promise<void> {
  await db.delete(rateLimits).where(lt(rateLimits.windowStart, before));
}
