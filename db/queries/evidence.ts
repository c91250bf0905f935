/** Provider events, and the evidence in them. */
import { and, eq } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { EvidenceProvider } from '../../domain/settlement/evidence.ts';
import type { Tx } from '../client.ts';
import { columnNames, columnParameters, columnsOf, columnValues } from '../column-list.ts';
import { providerEvents } from '../schema/evidence.ts';
import { type Parameter, statement } from '../statement.ts';

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

const insertEventStatement = statement<readonly Parameter[], { readonly event_id: string }>(
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
  const inserted = await insertEventStatement(tx, ...columnValues(PROVIDER_EVENT, event));
  if (inserted.length === 1) return { duplicate: false, matched: event.matched };
  const { provider, eventId, bodySha256, matched } = providerEvents;
  const [stored] = await tx
    .select({ bodySha256, matched })
    .from(providerEvents)
    .where(and(eq(provider, event.provider), eq(eventId, event.eventId)));
  if (!stored?.bodySha256.equals(event.bodySha256)) throw new DomainError('provider_event_conflict');
  return { duplicate: true, matched: stored.matched };
}

const findRecordedStatement = statement<[provider: string, eventId: string], { readonly found: boolean }>(
  'find_evidence',
  'SELECT EXISTS (SELECT FROM evidence WHERE provider = $1 AND event_id = $2) AS found',
);

/** Whether the evidence of this event is recorded. */
export async function isEvidenceRecorded(tx: Tx, provider: EvidenceProvider, eventId: string): Promise<boolean> {
  const [row] = await findRecordedStatement(tx, provider, eventId);
  return row?.found === true;
}
