/** Counts requests per caller and fixed window, across processes, by one statement. */
import { lt, sql } from 'drizzle-orm';
import type { Database } from '../client.ts';
import { rateLimits } from '../schema/rate-limit.ts';

/**
 * A transaction of its own, which does not wait for the disk: a server that crashes forgives the last instant's requests.
 *
 * @returns how much of the window's quota this caller has used, this request included
 */
export async function countRequest(db: Database, caller: string, windowStart: Date, cost: number): Promise<number> {
  const [row] = await db
    .insert(rateLimits)
    .values({ caller, windowStart, used: cost })
    .onConflictDoUpdate({
      target: rateLimits.caller,
      set: {
        windowStart,
        used: sql`CASE WHEN ${rateLimits.windowStart} = excluded.window_start THEN ${rateLimits.used} ELSE 0 END + excluded.used`,
      },
    })
    .returning({ used: rateLimits.used, durability: sql`set_config('synchronous_commit', 'off', true)` });
  return row?.used ?? cost;
}

/** Forgets callers who have not been seen since. */
export async function deleteRateLimits(db: Database, before: Date): Promise<void> {
  await db.delete(rateLimits).where(lt(rateLimits.windowStart, before));
}
