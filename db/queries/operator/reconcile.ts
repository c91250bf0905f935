/** What a comparison with Temporal and with the payout rail reads. For an operator, as object.ts says. */
import { and, asc, eq, gte, inArray, sql } from 'drizzle-orm';
import { isTerminal } from '../../../domain/settlement/state.ts';
import { isOpen } from '../../../domain/verification.ts';
import type { Queryable } from '../../client.ts';
import { settlements } from '../../schema/settlement.ts';
import { verifications } from '../../schema/verification.ts';

/** Of one statement. */
const IDS_MAX = 500;

export type Stored = { readonly status: string; readonly hasEnded: boolean };

/** The status of each of these settlements and verifications that is stored. */
export async function findStatuses(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Stored>> {
  const found = new Map<string, Stored>();
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const some = ids.slice(from, from + IDS_MAX);
    const ofSettlements = await db
      .select({ id: settlements.settlementId, status: settlements.status })
      .from(settlements)
      .where(inArray(settlements.settlementId, some));
    const ofVerifications = await db
      .select({ id: verifications.verificationId, status: verifications.status })
      .from(verifications)
      .where(inArray(verifications.verificationId, some));
    for (const { id, status } of ofSettlements) found.set(id, { status, hasEnded: isTerminal(status) });
    for (const { id, status } of ofVerifications) found.set(id, { status, hasEnded: !isOpen(status) });
  }
  return found;
}

type Settled = { readonly settlementId: string; readonly updatedAt: Date };

export type Period = { readonly since: Date; readonly until: Date };

/**
 * The settlements that were settled in this time, in pages. Those that changed afterwards are found by their
 * transition.
 */
export async function* listSettled(db: Queryable, { since, until }: Period): AsyncGenerator<readonly string[]> {
  for (let last: Settled = { settlementId: '', updatedAt: since }; ; ) {
    const page = await db
      .select({ settlementId: settlements.settlementId, updatedAt: settlements.updatedAt })
      .from(settlements)
      .where(
        and(
          eq(settlements.status, 'settled'),
          gte(settlements.updatedAt, last.updatedAt),
          sql`(${settlements.updatedAt}, ${settlements.settlementId}) > (${last.updatedAt.toISOString()}, ${last.settlementId})`,
          sql`EXISTS (SELECT FROM settlement_transitions t WHERE t.settlement_id = settlements.settlement_id
            AND t.to_status = 'settled' AND t.at BETWEEN ${since.toISOString()} AND ${until.toISOString()})`,
        ),
      )
      .orderBy(asc(settlements.updatedAt), asc(settlements.settlementId))
      .limit(IDS_MAX);
    yield page.map(({ settlementId }) => settlementId);
    const next = page.at(-1);
    if (!next || page.length < IDS_MAX) return;
    last = next;
  }
}
