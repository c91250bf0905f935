import { sql } from 'drizzle-orm';
import { bigint, bigserial, boolean, index, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { EvidenceKind, EvidenceProvider } from '../../domain/settlement/evidence.ts';
import type { Failure } from '../../domain/settlement/state.ts';
import { bytes, moment, reference } from './column.ts';
import { settlements } from './settlement.ts';

/** Every verified provider event, once per provider and id, permanently; the body is kept sealed (contract §9). */
export const providerEvents = pgTable(
  'provider_events',
  {
    provider: text('provider').notNull(),
    eventId: text('event_id').notNull(),
    type: text('type').notNull(),
    bodySha256: bytes('body_sha256').notNull(),
    bodySealed: text('body_sealed').notNull(),
    matched: boolean('matched').notNull(),
    receivedAt: moment('received_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.provider, table.eventId] })],
);

/** What a provider event says about one settlement's money. `pending` until the workflow has decided by it. */
export const evidence = pgTable(
  'evidence',
  {
    evidenceId: text('evidence_id').primaryKey(),
    /** The order in which the evidence was committed, under the settlement's row lock. */
    position: bigserial('position', { mode: 'number' }).notNull(),
    settlementId: reference('settlement_id', () => settlements.settlementId),
    provider: text('provider').$type<EvidenceProvider>().notNull(),
    eventId: text('event_id').notNull(),
    kind: text('kind').$type<EvidenceKind>().notNull(),
    amountMinor: bigint('amount_minor', { mode: 'bigint' }),
    currency: text('currency'),
    failure: jsonb('failure').$type<Failure>(),
    sha256: bytes('sha256').notNull(),
    pending: boolean('pending').notNull(),
    /** What it took back of the money that was counted. */
    reversedMinor: bigint('reversed_minor', { mode: 'bigint' }).notNull(),
    receivedAt: moment('received_at').notNull(),
  },
  (table) => [
    uniqueIndex('evidence_event').on(table.provider, table.eventId),
    index('evidence_settlement').on(table.settlementId, table.position),
    index('evidence_pending').on(table.evidenceId).where(sql`${table.pending}`),
  ],
);
