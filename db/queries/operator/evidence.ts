/** Providers' events, and the evidence in them. For an operator, as object.ts says. */
import { and, desc, eq, inArray, sql } from 'drizzle-orm';
import { COLLECTORS } from '../../../domain/payment-method.ts';
import { EVENT_PROVIDERS } from '../../../domain/settlement/evidence.ts';
import type { Queryable } from '../../client.ts';
import { evidence, providerEvents } from '../../schema/evidence.ts';
import { lastOf } from './object.ts';

/** The latest evidence of a settlement, in its order. */
export const listEvidence = (db: Queryable, settlementId: string) =>
  lastOf(db.select().from(evidence).where(eq(evidence.settlementId, settlementId)).orderBy(desc(evidence.position)));

/** What all evidence of a settlement says, however much there is. */
export async function summarizeEvidence(db: Queryable, settlementId: string) {
  const [summary] = await db
    .select({
      isPending: sql<boolean>`coalesce(bool_or(${evidence.pending}), false)`,
      hasRailPaid: sql<boolean>`coalesce(bool_or(${evidence.kind} = 'payout_confirmed'), false)`,
    })
    .from(evidence)
    .where(eq(evidence.settlementId, settlementId));
  return { isPending: summary?.isPending === true, hasRailPaid: summary?.hasRailPaid === true };
}

/** Two providers may use one id. */
export const listProviderEvents = (db: Queryable, eventId: string) =>
  db
    .select({
      provider: providerEvents.provider,
      type: providerEvents.type,
      bodySha256: providerEvents.bodySha256,
      matched: providerEvents.matched,
      receivedAt: providerEvents.receivedAt,
    })
    .from(providerEvents)
    .where(and(inArray(providerEvents.provider, EVENT_PROVIDERS), eq(providerEvents.eventId, eventId)));

export const listEvidenceOfEvent = (db: Queryable, eventId: string) =>
  db
    .select()
    .from(evidence)
    .where(and(inArray(evidence.provider, COLLECTORS), eq(evidence.eventId, eventId)));
