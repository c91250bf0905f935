/** A settlement, and what belongs to it. For an operator, as object.ts says. */
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import type { Queryable } from '../../client.ts';
import { postings, settlementExceptions, settlements, settlementTransitions } from '../../schema/settlement.ts';
import { toSettlement } from '../settlement.ts';
import { lastOf, ROWS_MAX } from './object.ts';

export const settlementColumns = {
  settlementId: settlements.settlementId,
  status: settlements.status,
  amountMinor: settlements.amountMinor,
  sourceCurrency: settlements.sourceCurrency,
  updatedAt: settlements.updatedAt,
} as const;

export async function findSettlementObject(db: Queryable, settlementId: string) {
  const [row] = await db.select().from(settlements).where(eq(settlements.settlementId, settlementId));
  return row && toSettlement(row);
}

/** The latest settlements of an organization. */
export const listSettlementsOf = (db: Queryable, orgId: string) =>
  db
    .select(settlementColumns)
    .from(settlements)
    .where(eq(settlements.orgId, orgId))
    .orderBy(desc(settlements.createdAt), desc(settlements.settlementId))
    .limit(ROWS_MAX);

/** The latest settlements to a recipient. */
export const listSettlementsTo = (db: Queryable, orgId: string, recipientId: string) =>
  db
    .select(settlementColumns)
    .from(settlements)
    .where(and(eq(settlements.orgId, orgId), eq(settlements.recipientId, recipientId)))
    .orderBy(desc(settlements.createdAt), desc(settlements.settlementId))
    .limit(ROWS_MAX);

export const listTransitions = (db: Queryable, settlementId: string) =>
  db
    .select()
    .from(settlementTransitions)
    .where(eq(settlementTransitions.settlementId, settlementId))
    .orderBy(asc(settlementTransitions.sequence));

/** The latest exceptions, in their order. */
export const listExceptions = (db: Queryable, settlementId: string) =>
  lastOf(
    db
      .select()
      .from(settlementExceptions)
      .where(eq(settlementExceptions.settlementId, settlementId))
      .orderBy(desc(settlementExceptions.at), desc(settlementExceptions.exceptionId)),
  );

/** The latest postings, in the order in which they were booked. */
export const listJournal = (db: Queryable, settlementId: string) =>
  lastOf(
    db
      .select()
      .from(postings)
      .where(eq(postings.settlementId, settlementId))
      .orderBy(desc(postings.at), desc(postings.step), desc(postings.line)),
  );

/** The sum of all postings of a settlement in each currency. */
export const sumPostings = (db: Queryable, settlementId: string) =>
  db
    .select({ currency: postings.currency, sumMinor: sql`sum(${postings.amountMinor})`.mapWith(BigInt) })
    .from(postings)
    .where(eq(postings.settlementId, settlementId))
    .groupBy(postings.currency)
    .orderBy(asc(postings.currency));
