/**
 * Provider events and the evidence in them. An event and its evidence are written in one transaction under the
 * settlement's row lock, which orders them with every transition. The settlement's workflow folds each evidence once.
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
import type { Stamp } from './event.ts';
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

/** `matched`: the event was applied to an object. For a duplicate it says what was true at the first receipt. */
export type Receipt = { readonly duplicate: boolean; readonly matched: boolean };

/**
 * Stores a verified event, unless it was stored before.
 *
 * @throws DomainError `provider_event_conflict` when its id was seen with other bytes
 */
export async function insertProviderEvent(tx: Tx, event: ProviderEvent): Promise<Receipt> {
  const inserted = await tx
    .insert(providerEvents)
    .values(event)
    .onConflictDoNothing()
    .returning({ eventId: providerEvents.eventId });
  if (inserted.length === 1) return { duplicate: false, matched: event.matched };
  const { provider, eventId, bodySha256, matched } = providerEvents;
  const [stored] = await tx
    .select({ bodySha256, matched })
    .from(providerEvents)
    .where(and(eq(provider, event.provider), eq(eventId, event.eventId)));
  if (!stored?.bodySha256.equals(event.bodySha256)) throw new DomainError('provider_event_conflict');
  return { duplicate: true, matched: stored.matched };
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
 * Records evidence for a locked settlement. Evidence of one provider event is recorded once.
 *
 * @param stamp `at` on the settlement's own clock
 * @returns whether the evidence waits to be folded, so that the settlement's workflow must be signalled
 */
export async function recordEvidence(
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  { at, requestId }: Stamp,
): Promise<boolean> {
  const evidenceId = newId();
  const reception = receive(settlement, { evidenceId, ...given });
  const inserted = await tx
    .insert(evidence)
    .values({ evidenceId, ...given, pending: reception.pending, receivedAt: at })
    .onConflictDoNothing()
    .returning({ evidenceId: evidence.evidenceId });
  if (inserted.length === 0) return false;
  if (reception.surplus) await bookSurplus(tx, settlement, { evidenceId, amountMinor: given.amountMinor }, at);
  if (reception.exception)
    await recordException(tx, settlement, { type: reception.exception, at, evidenceId, requestId });
  return reception.pending;
}

/** As `recordEvidence`; signals the settlement's workflow when the evidence waits to be folded. */
export async function recordEvidenceAndSignal(
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  stamp: Stamp,
): Promise<void> {
  const pending = await recordEvidence(tx, settlement, given, stamp);
  if (pending) await enqueue(tx, settlementMessage(settlement, 'evidenceRecorded', stamp.requestId));
}

/** Books money that is due back. */
async function bookSurplus(
  tx: Tx,
  settlement: Settlement,
  received: { readonly evidenceId: string; readonly amountMinor: bigint | null },
  at: Date,
): Promise<void> {
  await insertPostings(tx, settlement.settlementId, {
    step: `surplus:${received.evidenceId}`,
    postings: surplusPostings(settlement, received.amountMinor ?? 0n),
    at,
  });
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
    await insertPostings(tx, settlement.settlementId, {
      step: `collection:${applied.evidenceId}`,
      postings: collectionPostings(settlement, applied.amountMinor),
      at,
    });
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
    if (reception.surplus) await bookSurplus(tx, settlement, pending, at);
    if (reception.exception)
      await recordException(tx, settlement, { type: reception.exception, at, evidenceId: pending.evidenceId });
  }
}
