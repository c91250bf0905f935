/** Provider events, and the evidence in them. */
import { and, eq, sql } from 'drizzle-orm';
import { DomainError } from '../../domain/error.ts';
import type { RecordedEvidence, SettlementException } from '../../domain/settlement/evidence.ts';
import type { Tx } from '../client.ts';
import { columnNames, columnParameters, columnsOf, columnValues } from '../column-list.ts';
import { evidence, providerEvents } from '../schema/evidence.ts';
import { type Parameter, statement } from '../statement.ts';
import { type ExceptionRows, exceptionsOf, exceptionsSql } from './settlement-exception.ts';

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

/** `matched`: the event was applied to an object, now or before. */
export type Receipt = { readonly duplicate: boolean; readonly matched: boolean };

const PROVIDER_EVENT = columnsOf(providerEvents);

const insertEventStatement = statement<readonly Parameter[], ExceptionRows & { readonly stored: boolean }>(
  'insert_provider_event',
  `WITH stored AS (
    INSERT INTO provider_events (${columnNames(PROVIDER_EVENT)}) VALUES (${columnParameters(PROVIDER_EVENT, 0)})
    ON CONFLICT DO NOTHING RETURNING event_id
  )
  SELECT EXISTS (SELECT FROM stored) AS stored, ${exceptionsSql(`$${PROVIDER_EVENT.length + 1}`)} AS exceptions`,
);

/**
 * Stores a verified event, unless it was stored before.
 *
 * @param settlementId the locked settlement that it is about; null if it is about none
 * @returns with the receipt the settlement's exceptions, which the decision about the event needs
 * @throws DomainError `provider_event_conflict` when its id was seen with other bytes
 */
export async function insertProviderEvent(
  tx: Tx,
  event: ProviderEvent,
  settlementId: string | null,
): Promise<{ readonly receipt: Receipt; readonly exceptions: readonly SettlementException[] }> {
  const [inserted] = await insertEventStatement(tx, ...columnValues(PROVIDER_EVENT, event), settlementId);
  const exceptions = exceptionsOf(inserted);
  if (inserted?.stored) return { receipt: { duplicate: false, matched: event.matched }, exceptions };
  const { provider, eventId, bodySha256 } = providerEvents;
  // The row is permanent: what was applied later shows by its evidence. A verification takes a decision only once.
  const matched = sql<boolean>`${providerEvents.matched} OR EXISTS (SELECT FROM ${evidence}
    WHERE ${evidence.provider} = ${event.provider} AND ${evidence.eventId} = ${event.eventId})`;
  const [stored] = await tx
    .select({ bodySha256, matched })
    .from(providerEvents)
    .where(and(eq(provider, event.provider), eq(eventId, event.eventId)));
  if (!stored?.bodySha256.equals(event.bodySha256)) throw new DomainError('provider_event_conflict');
  return { receipt: { duplicate: true, matched: stored.matched }, exceptions };
}

const findRecordedStatement = statement<
  [provider: string, eventId: string, settlementId: string],
  ExceptionRows & { readonly found: boolean }
>(
  'find_evidence',
  `SELECT EXISTS (SELECT FROM evidence WHERE provider = $1 AND event_id = $2) AS found,
    ${exceptionsSql('$3')} AS exceptions`,
);

/** Whether the evidence of this event is recorded, and the exceptions of the locked settlement that it is about. */
export async function findRecorded(
  tx: Tx,
  settlementId: string,
  { provider, eventId }: Pick<RecordedEvidence, 'provider' | 'eventId'>,
): Promise<{ readonly isRecorded: boolean; readonly exceptions: readonly SettlementException[] }> {
  const [row] = await findRecordedStatement(tx, provider, eventId, settlementId);
  return { isRecorded: row?.found === true, exceptions: exceptionsOf(row) };
}
