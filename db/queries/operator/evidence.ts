/** Providers' events, and the evidence in them. For an operator, as object.ts says. */
import { and, desc, eq, inArray } from 'drizzle-orm';
import { COLLECTORS } from '../../../domain/payment-method.ts';
import { EVENT_PROVIDERS } from '../../../domain/settlement/evidence.ts';
import type { Queryable } from '../../client.ts';
import { evidence, providerEvents } from '../../schema/evidence.ts';
import { lastOf } from './object.ts';

/** The latest evidence of a settlement, in its order. */
export const listEvidence = (db: Queryable, settlementId: string) =>
  lastOf(db.select().from(evidence).where(eq(evidence.settlementId, settlementId)).orderBy(desc(evidence.position)));

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
