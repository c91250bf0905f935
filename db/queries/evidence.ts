/**
 * Provider events and the evidence in them. An event and its evidence are written in one transaction under the
 * settlement's row lock, which orders them with every transition. That transaction books the money. The settlement's
 * workflow decides by the evidence later, once.
 */
import { and, asc, eq, gte, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import {
  type Evidence,
  type EvidenceKind,
  type EvidenceProvider,
  type Reception,
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
import {
  addReceived,
  findSettlementOwner,
  insertPostings,
  lockSettlement,
  recordException,
  touchSettlement,
} from './settlement.ts';

export type ProviderEvent = {
  readonly provider: string;
  readonly eventId: string;
  readonly type: string;
  readonly bodySha256: Buffer;
  readonly bodySealed: string;
  readonly matched: boolean;
  readonly receivedAt: Date;
};

/** What a sealed body is bound to. It does not open for another event. */
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

/** Locks the settlement that a provider event names; undefined for an unknown id. */
export async function lockEvidenceTarget(tx: Tx, settlementId: string): Promise<Settlement | undefined> {
  const orgId = await findSettlementOwner(tx, settlementId);
  return orgId === undefined ? undefined : lockSettlement(tx, orgId, settlementId);
}

/**
 * Records evidence for a locked settlement: books its money, and records the exception that it is. Evidence of one
 * provider event is recorded once.
 *
 * @param stamp `at` on the settlement's own clock
 * @returns the settlement as it now stands, and whether its workflow must decide by the evidence
 */
export async function recordEvidence(
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  stamp: Stamp,
): Promise<{ readonly settlement: Settlement; readonly decides: boolean }> {
  const received: Evidence = { evidenceId: newId(), ...given };
  const reception = receive(settlement, received);
  const inserted = await tx
    .insert(evidence)
    .values({ ...given, evidenceId: received.evidenceId, pending: reception.pending, receivedAt: stamp.at })
    .onConflictDoNothing()
    .returning({ evidenceId: evidence.evidenceId });
  if (inserted.length === 0) return { settlement, decides: false };
  return {
    settlement: await applyReception(tx, settlement, { received, reception }, stamp),
    decides: reception.pending || reception.booked === 'held',
  };
}

/** As `recordEvidence`; signals the settlement's workflow when it must decide by the evidence. */
export async function recordEvidenceAndSignal(
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  stamp: Stamp,
): Promise<void> {
  const { decides } = await recordEvidence(tx, settlement, given, stamp);
  if (decides) await enqueue(tx, settlementMessage(settlement, 'evidenceRecorded', stamp.requestId));
}

/** What a piece of evidence does to the settlement, beside its own row. */
async function applyReception(
  tx: Tx,
  settlement: Settlement,
  { received, reception }: { readonly received: Evidence; readonly reception: Reception },
  stamp: Stamp,
): Promise<Settlement> {
  const { booked, exception } = reception;
  const { evidenceId, amountMinor, currency, failure } = received;
  // Later steps are dated by the settlement's last change, so none is dated before this evidence or its event.
  let latest = reception.pending || exception !== null ? await touchSettlement(tx, settlement, stamp.at) : settlement;
  if (booked !== null) {
    const minor = amountMinor ?? 0n;
    const set =
      booked === 'held'
        ? { step: `collection:${evidenceId}`, postings: collectionPostings(settlement, minor) }
        : { step: `surplus:${evidenceId}`, postings: surplusPostings(settlement, minor) };
    await insertPostings(tx, settlement.settlementId, { ...set, at: stamp.at });
    latest = await addReceived(tx, settlement, minor, stamp);
  }
  if (exception !== null) {
    const reason = failure?.code ?? null;
    await recordException(tx, latest, { type: exception, evidenceId, amountMinor, currency, reason, ...stamp });
  }
  return latest;
}

const EVIDENCE_COLUMNS = {
  evidenceId: evidence.evidenceId,
  kind: evidence.kind,
  amountMinor: evidence.amountMinor,
  currency: evidence.currency,
  failure: evidence.failure,
};

/** Evidence that the workflow must still decide by, oldest first. */
export async function listPendingEvidence(tx: Tx, settlementId: string): Promise<Evidence[]> {
  return await tx
    .select(EVIDENCE_COLUMNS)
    .from(evidence)
    .where(and(eq(evidence.settlementId, settlementId), eq(evidence.pending, true)))
    .orderBy(asc(evidence.position));
}

/** The evidence with which the settlement's amount was covered; undefined while it is not. */
export async function findCoveringEvidence(
  tx: Tx,
  settlement: Settlement,
): Promise<Pick<Evidence, 'evidenceId' | 'amountMinor'> | undefined> {
  const collected = tx
    .select({
      evidenceId: evidence.evidenceId,
      amountMinor: evidence.amountMinor,
      position: evidence.position,
      totalMinor: sql<string>`sum(${evidence.amountMinor}) OVER (ORDER BY ${evidence.position})`.as('total_minor'),
    })
    .from(evidence)
    .where(
      and(
        eq(evidence.settlementId, settlement.settlementId),
        eq(evidence.kind, 'collection_succeeded'),
        eq(evidence.currency, settlement.sourceCurrency),
      ),
    )
    .as('collected');
  const [row] = await tx
    .select({ evidenceId: collected.evidenceId, amountMinor: collected.amountMinor })
    .from(collected)
    .where(gte(collected.totalMinor, String(settlement.amountMinor)))
    .orderBy(asc(collected.position))
    .limit(1);
  return row;
}

/** Marks evidence that has been decided by. */
export async function markDecided(tx: Tx, evidenceId: string): Promise<void> {
  await tx.update(evidence).set({ pending: false }).where(eq(evidence.evidenceId, evidenceId));
}

/**
 * Receives pending evidence again, in the state that was reached since: what is no longer waited for is booked, or
 * recorded as an exception. A settlement that has ended keeps none pending.
 */
export async function receivePending(tx: Tx, settlement: Settlement, stamp: Stamp): Promise<Settlement> {
  let latest = settlement;
  for (const received of await listPendingEvidence(tx, settlement.settlementId)) {
    const reception = receive(latest, received);
    if (reception.pending) continue;
    await markDecided(tx, received.evidenceId);
    latest = await applyReception(tx, latest, { received, reception }, stamp);
  }
  return latest;
}
