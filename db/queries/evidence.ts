/**
 * Provider events and the evidence in them. An event and its evidence are one transaction, ordered with every
 * transition of the settlement by its row lock; evidence is folded once, by the settlement's workflow.
 */
import { and, asc, eq, inArray } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import {
  type Evidence,
  type EvidenceKind,
  type EvidenceProvider,
  foldFunding,
  receive,
} from '../../domain/evidence.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import { collectionPostings, surplusPostings } from '../../domain/posting.ts';
import type { Failure, Settlement } from '../../domain/settlement.ts';
import type { Tx } from '../client.ts';
import { newId } from '../id.ts';
import { evidence, providerEvents } from '../schema/evidence.ts';
import { enqueue } from './outbox.ts';
import { addReceived, findSettlementOwner, insertPostings, lockSettlement, recordException } from './settlement.ts';

export type ProviderEvent = {
  readonly provider: string;
  readonly eventId: string;
  readonly type: string;
  readonly bodySha256: Buffer;
  readonly bodySealed: string;
  readonly matched: boolean;
  readonly receivedAt: Date;
};

/** What a sealed body is bound to; it opens for no other event. */
export const providerEventBinding = (provider: string, eventId: string): string =>
  `provider_event.body:${provider}:${eventId}`;

/**
 * Stores a verified event once.
 *
 * @returns false when the same event with the same bytes was stored before
 * @throws DomainError `provider_event_conflict` when its id was seen with other bytes
 */
export async function insertProviderEvent(tx: Tx, event: ProviderEvent): Promise<boolean> {
  const inserted = await tx
    .insert(providerEvents)
    .values(event)
    .onConflictDoNothing()
    .returning({ eventId: providerEvents.eventId });
  if (inserted.length === 1) return true;
  const [stored] = await tx
    .select({ bodySha256: providerEvents.bodySha256 })
    .from(providerEvents)
    .where(and(eq(providerEvents.provider, event.provider), eq(providerEvents.eventId, event.eventId)));
  if (!stored?.bodySha256.equals(event.bodySha256)) throw new DomainError('provider_event_conflict');
  return false;
}

/** Whether an event was stored before, and applied to something. */
export async function findProviderEvent(
  tx: Tx,
  provider: string,
  eventId: string,
): Promise<{ matched: boolean } | undefined> {
  const [stored] = await tx
    .select({ matched: providerEvents.matched })
    .from(providerEvents)
    .where(and(eq(providerEvents.provider, provider), eq(providerEvents.eventId, eventId)));
  return stored;
}

export type NewEvidence = {
  readonly settlementId: string;
  readonly provider: EvidenceProvider;
  readonly eventId: string;
  readonly kind: EvidenceKind;
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  readonly failure: Failure | null;
  readonly sha256: Buffer;
};

/** Locks the settlement that an event names; undefined when there is none. */
export async function lockEvidenceTarget(tx: Tx, settlementId: string): Promise<Settlement | undefined> {
  const orgId = await findSettlementOwner(tx, settlementId);
  return orgId === undefined ? undefined : lockSettlement(tx, orgId, settlementId);
}

/**
 * Records evidence against a locked settlement. Evidence of one provider event is recorded once.
 *
 * @param at on the settlement's own clock
 * @returns whether there is something to fold, for which the settlement's workflow is to be rung
 */
export async function recordEvidence(
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  at: Date,
  requestId: string,
): Promise<boolean> {
  const evidenceId = newId();
  const reception = receive(settlement, { evidenceId, ...given });
  const inserted = await tx
    .insert(evidence)
    .values({ evidenceId, ...given, pending: reception.pending, receivedAt: at })
    .onConflictDoNothing()
    .returning({ evidenceId: evidence.evidenceId });
  if (inserted.length === 0) return false;
  if (reception.surplus) await bookSurplus(tx, settlement, evidenceId, given.amountMinor, at);
  if (reception.exception)
    await recordException(tx, settlement, { type: reception.exception, at, evidenceId, requestId });
  return reception.pending;
}

/** Records evidence and rings the settlement's workflow about it. */
export async function recordEvidenceAndRing(
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  at: Date,
  requestId: string,
): Promise<void> {
  const pending = await recordEvidence(tx, settlement, given, at, requestId);
  if (pending) await enqueue(tx, settlementMessage(settlement, 'evidenceRecorded', requestId));
}

async function bookSurplus(
  tx: Tx,
  settlement: Settlement,
  evidenceId: string,
  amountMinor: bigint | null,
  at: Date,
): Promise<void> {
  await insertPostings(
    tx,
    settlement.settlementId,
    `surplus:${evidenceId}`,
    surplusPostings(settlement, amountMinor ?? 0n),
    at,
  );
}

/** Evidence that waits to be folded, oldest first. */
export async function listPendingEvidence(tx: Tx, settlementId: string): Promise<Evidence[]> {
  return await tx
    .select({
      evidenceId: evidence.evidenceId,
      kind: evidence.kind,
      amountMinor: evidence.amountMinor,
      currency: evidence.currency,
      failure: evidence.failure,
    })
    .from(evidence)
    .where(and(eq(evidence.settlementId, settlementId), eq(evidence.pending, true)))
    .orderBy(asc(evidence.position));
}

export async function markFolded(tx: Tx, evidenceIds: readonly string[]): Promise<void> {
  if (evidenceIds.length > 0) {
    await tx
      .update(evidence)
      .set({ pending: false })
      .where(inArray(evidence.evidenceId, [...evidenceIds]));
  }
}

/**
 * Folds the pending collection evidence of a locked settlement: books each amount and adds it up.
 *
 * @returns the settlement with what was received, and what follows from it
 */
export async function foldCollections(
  tx: Tx,
  settlement: Settlement,
  at: Date,
): Promise<{ settlement: Settlement; outcome: ReturnType<typeof foldFunding>['outcome'] }> {
  const funding = foldFunding(settlement, await listPendingEvidence(tx, settlement.settlementId));
  for (const applied of funding.applied) {
    await insertPostings(
      tx,
      settlement.settlementId,
      `collection:${applied.evidenceId}`,
      collectionPostings(settlement, applied.amountMinor),
      at,
    );
  }
  const folded = funding.applied.map((applied) => applied.evidenceId);
  await markFolded(tx, funding.outcome ? [...folded, funding.outcome.evidenceId] : folded);
  const received = funding.applied.length > 0 ? await addReceived(tx, settlement, funding.receivedMinor) : settlement;
  return { settlement: received, outcome: funding.outcome };
}

/** Receives again, in the state that was reached, what was pending before a decision and not part of it. */
export async function receiveLeftovers(tx: Tx, settlement: Settlement, at: Date): Promise<void> {
  for (const pending of await listPendingEvidence(tx, settlement.settlementId)) {
    const reception = receive(settlement, pending);
    if (reception.pending) continue;
    await markFolded(tx, [pending.evidenceId]);
    if (reception.surplus) await bookSurplus(tx, settlement, pending.evidenceId, pending.amountMinor, at);
    if (reception.exception)
      await recordException(tx, settlement, { type: reception.exception, at, evidenceId: pending.evidenceId });
  }
}
