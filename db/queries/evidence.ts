/**
 * Provider events and the evidence in them. An event and its evidence are written in one transaction under the
 * settlement's row lock, which orders them with every transition. That transaction books the money. The settlement's
 * workflow decides by the evidence later, once.
 */
import { and, asc, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import { type Evidence, type EvidenceKind, type EvidenceProvider, receive } from '../../domain/evidence.ts';
import { settlementMessage } from '../../domain/outbox.ts';
import type { Failure, Settlement } from '../../domain/settlement.ts';
import type { Tx } from '../client.ts';
import { columnNames, columnParameters, columnsOf, columnValues } from '../column-list.ts';
import { newId } from '../id.ts';
import { evidence, providerEvents } from '../schema/evidence.ts';
import { type Parameter, statement } from '../statement.ts';
import type { Stamp } from './event.ts';
import { changeOf, type StoredEvidence, withEvidence, withMessage, writeChange } from './settlement-change.ts';

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

const PROVIDER_EVENT = columnsOf(providerEvents);

const insertEvent = statement<readonly Parameter[], { readonly event_id: string }>(
  'insert_provider_event',
  `INSERT INTO provider_events (${columnNames(PROVIDER_EVENT)}) VALUES (${columnParameters(PROVIDER_EVENT, 0)})
  ON CONFLICT DO NOTHING RETURNING event_id`,
);

/**
 * Stores a verified event, unless it was stored before.
 *
 * @throws DomainError `provider_event_conflict` when its id was seen with other bytes
 */
export async function insertProviderEvent(tx: Tx, event: ProviderEvent): Promise<Receipt> {
  const inserted = await insertEvent(tx, ...columnValues(PROVIDER_EVENT, event));
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

/**
 * Records evidence for a locked settlement: books its money, and records the exception that it is. Evidence of one
 * provider event is recorded once.
 *
 * @param stamp `at` on the settlement's own clock
 * @returns the settlement as it now stands, and the evidence; undefined when it was recorded before
 */
export const recordEvidence = (
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  stamp: Stamp,
): Promise<RecordedEvidence> => record(tx, settlement, given, { ...stamp, signals: false });

/** As `recordEvidence`; signals the settlement's workflow when it must decide by the evidence. */
export const recordEvidenceAndSignal = (
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  stamp: Stamp,
): Promise<RecordedEvidence> => record(tx, settlement, given, { ...stamp, signals: true });

type RecordedEvidence = { readonly settlement: Settlement; readonly evidence: StoredEvidence | undefined };

async function record(
  tx: Tx,
  settlement: Settlement,
  given: NewEvidence,
  { signals, ...stamp }: Stamp & { readonly signals: boolean },
): Promise<RecordedEvidence> {
  const received = { evidenceId: newId(), ...given };
  const reception = receive(settlement, received);
  const recorded = withEvidence(changeOf(settlement, stamp), received, reception);
  const decides = reception.pending || reception.booked === 'held';
  const message = settlementMessage(settlement, 'evidenceRecorded', stamp.requestId);
  const written = await writeChange(tx, signals && decides ? withMessage(recorded, message) : recorded);
  return { settlement: written ?? settlement, evidence: written && recorded.evidence };
}

/** Evidence that the workflow must still decide by, oldest first. */
export async function listPendingEvidence(tx: Tx, settlementId: string): Promise<Evidence[]> {
  const { evidenceId, kind, amountMinor, currency, failure } = evidence;
  return await tx
    .select({ evidenceId, kind, amountMinor, currency, failure })
    .from(evidence)
    .where(and(eq(evidence.settlementId, settlementId), eq(evidence.pending, true)))
    .orderBy(asc(evidence.position));
}
