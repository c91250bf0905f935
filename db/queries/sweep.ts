/** How far the sweep for lost runs has come. */
import { asc, eq, sql } from 'drizzle-orm';
import type { SweptKind } from '../../domain/outbox.ts';
import type { Queryable, Tx } from '../client.ts';
import { sweeps } from '../schema/sweep.ts';

/** @returns the id after which the next sweep begins; empty at the first one */
export async function getSweepPosition(db: Queryable, kind: SweptKind): Promise<string> {
  const [row] = await db.select({ afterId: sweeps.afterId }).from(sweeps).where(eq(sweeps.kind, kind)).limit(1);
  return row?.afterId ?? '';
}

/** The time of the least recent of the kinds' sweeps, on the database's clock. */
export async function findOldestSweep(db: Queryable): Promise<{ at: Date; ageMs: number } | undefined> {
  const [row] = await db
    .select({
      at: sweeps.finishedAt,
      ageMs: sql<number>`extract(epoch FROM now() - ${sweeps.finishedAt})::float8 * 1000`,
    })
    .from(sweeps)
    .orderBy(asc(sweeps.finishedAt))
    .limit(1);
  return row;
}

/** @param sweep `restarted`: how many lost runs this sweep starts again */
export async function recordSweep(
  tx: Tx,
  kind: SweptKind,
  { afterId, restarted }: { readonly afterId: string; readonly restarted: number },
): Promise<void> {
  await tx
    .update(sweeps)
    .set({ afterId, restarted: sql`${sweeps.restarted} + ${restarted}`, finishedAt: sql`now()` })
    .where(eq(sweeps.kind, kind));
}
