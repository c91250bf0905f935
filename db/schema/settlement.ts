import { sql } from 'drizzle-orm';
import { bigint, index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { CorridorId, Rail } from '../../domain/corridor.ts';
import type { Currency } from '../../domain/money.ts';
import type { PaymentMethod } from '../../domain/payment-method.ts';
import type { EnvironmentName } from '../../domain/runtime.ts';
import type { ExceptionType } from '../../domain/settlement/evidence.ts';
import type { Account } from '../../domain/settlement/posting.ts';
import type { Failure, Origin, Purpose, SettlementStatus } from '../../domain/settlement/state.ts';
import { moment, reference } from './column.ts';
import { organizations } from './organization.ts';
import { recipients } from './recipient.ts';

const minor = (name: string) => bigint(name, { mode: 'bigint' });

export const settlements = pgTable(
  'settlements',
  {
    settlementId: text('settlement_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    origin: text('origin').$type<Origin>().notNull(),
    status: text('status').$type<SettlementStatus>().notNull(),
    version: integer('version').notNull(),
    /** The sequence number of the latest event. */
    eventSequence: integer('event_sequence').notNull().default(0),
    corridor: text('corridor').$type<CorridorId>().notNull(),
    recipientId: reference('recipient_id', () => recipients.recipientId),
    payeeSealed: text('payee_sealed').notNull(),
    payeeSha256: text('payee_sha256').notNull(),
    paymentMethod: text('payment_method').$type<PaymentMethod>().notNull(),
    payoutRail: text('payout_rail').$type<Rail>().notNull(),
    amountMinor: minor('amount_minor').notNull(),
    sourceCurrency: text('source_currency').$type<Currency>().notNull(),
    destinationAmountMinor: minor('destination_amount_minor').notNull(),
    destinationCurrency: text('destination_currency').$type<Currency>().notNull(),
    rateMillionths: minor('rate_millionths').notNull(),
    inputFeeMinor: minor('input_fee_minor').notNull(),
    platformFeeMinor: minor('platform_fee_minor').notNull(),
    totalFeesMinor: minor('total_fees_minor').notNull(),
    amountReceivedMinor: minor('amount_received_minor').notNull(),
    amountRefundedMinor: minor('amount_refunded_minor').notNull(),
    takenBackMinor: minor('taken_back_minor').notNull(),
    purpose: text('purpose').$type<Purpose>(),
    reference: text('reference'),
    metadata: jsonb('metadata').$type<Record<string, string>>().notNull(),
    environment: text('environment').$type<EnvironmentName>().notNull(),
    failure: jsonb('failure').$type<Failure>(),
    /** The payer's card or account token, sealed; only the provider's adapter opens it. */
    paymentTokenSealed: text('payment_token_sealed'),
    expiresAt: moment('expires_at'),
    clockOffsetMs: bigint('clock_offset_ms', { mode: 'number' }).notNull(),
    /** What test helpers had the simulator collect, arrived or not; null for nothing. */
    sandboxRequestedMinor: minor('sandbox_requested_minor'),
    certificateId: text('certificate_id'),
    requestId: text('request_id').notNull(),
    createdAt: moment('created_at').notNull(),
    updatedAt: moment('updated_at').notNull(),
  },
  (table) => [
    index('settlements_org').on(table.orgId, table.createdAt, table.settlementId),
    index('settlements_org_filter').on(
      table.orgId,
      table.status,
      table.corridor,
      table.paymentMethod,
      table.createdAt,
      table.settlementId,
    ),
    index('settlements_org_recipient').on(
      table.orgId,
      table.recipientId,
      table.status,
      table.corridor,
      table.paymentMethod,
      table.createdAt,
      table.settlementId,
    ),
    index('settlements_org_reference')
      .on(
        table.orgId,
        table.reference,
        table.status,
        table.corridor,
        table.paymentMethod,
        table.createdAt,
        table.settlementId,
      )
      .where(sql`${table.reference} IS NOT NULL`),
    index('settlements_recipient').on(table.orgId, table.recipientId, table.createdAt, table.settlementId),
    index('settlements_open')
      .on(table.settlementId)
      .where(sql`status IN ('accepted', 'compliance_hold', 'awaiting_funds', 'funded', 'paying_out', 'needs_review')`),
    index('settlements_status').on(table.status, table.updatedAt),
    index('settlements_request').on(table.requestId),
    index('settlements_refund_due')
      .on(table.updatedAt)
      .where(
        sql`amount_received_minor > amount_refunded_minor AND (status IN ('rejected', 'expired', 'failed', 'canceled')
          OR status IN ('funded', 'paying_out', 'needs_review', 'settled')
            AND amount_received_minor - amount_refunded_minor > amount_minor)`,
      ),
  ],
);

/**
 * The metadata of settlements, one row for each key: a list that is filtered by metadata reads it in its order. Only
 * triggers of `settlements` write it, so that status, corridor and payment method are the settlement's.
 */
export const settlementMetadata = pgTable(
  'settlement_metadata',
  {
    orgId: text('org_id').notNull(),
    key: text('key').notNull(),
    value: text('value').notNull(),
    status: text('status').$type<SettlementStatus>().notNull(),
    corridor: text('corridor').$type<CorridorId>().notNull(),
    paymentMethod: text('payment_method').$type<PaymentMethod>().notNull(),
    createdAt: moment('created_at').notNull(),
    settlementId: reference('settlement_id', () => settlements.settlementId),
  },
  (table) => [
    primaryKey({
      name: 'settlement_metadata_pk',
      columns: [
        table.orgId,
        table.key,
        table.value,
        table.status,
        table.corridor,
        table.paymentMethod,
        table.createdAt,
        table.settlementId,
      ],
    }),
  ],
);

/** One row for each transition. A state is entered at most once. */
export const settlementTransitions = pgTable(
  'settlement_transitions',
  {
    settlementId: reference('settlement_id', () => settlements.settlementId),
    sequence: integer('sequence').notNull(),
    from: text('from_status').$type<SettlementStatus>(),
    to: text('to_status').$type<SettlementStatus>().notNull(),
    at: moment('at').notNull(),
    reason: text('reason'),
    evidenceId: text('evidence_id'),
  },
  (table) => [
    primaryKey({ columns: [table.settlementId, table.sequence] }),
    uniqueIndex('settlement_transitions_once').on(table.settlementId, table.to),
  ],
);

export const settlementExceptions = pgTable(
  'settlement_exceptions',
  {
    exceptionId: text('exception_id').primaryKey(),
    settlementId: reference('settlement_id', () => settlements.settlementId),
    type: text('type').$type<ExceptionType>().notNull(),
    at: moment('at').notNull(),
    evidenceId: text('evidence_id'),
    amountMinor: minor('amount_minor'),
    currency: text('currency'),
  },
  (table) => [uniqueIndex('settlement_exceptions_once').on(table.settlementId, table.type, table.evidenceId)],
);

/** The journal. A trigger refuses a (settlement, step) whose rows do not sum to zero per currency. */
export const postings = pgTable(
  'postings',
  {
    settlementId: reference('settlement_id', () => settlements.settlementId),
    step: text('step').notNull(),
    line: integer('line').notNull(),
    account: text('account').$type<Account>().notNull(),
    currency: text('currency').$type<Currency>().notNull(),
    amountMinor: minor('amount_minor').notNull(),
    at: moment('at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.settlementId, table.step, table.line] })],
);
