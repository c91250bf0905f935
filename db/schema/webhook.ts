import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  pgSequence,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { EventType } from '../../domain/event.ts';
import type {
  AttemptError,
  AttemptOutcome,
  DeliveryStatus,
  DisabledReason,
  EventFilter,
  WebhookStatus,
} from '../../domain/webhook.ts';
import { bytes, eventCounter, moment } from './column.ts';
import { events } from './event.ts';
import { organizations } from './organization.ts';

/** Subscriptions. Secrets are sealed, and erased at deletion; the row stays for the deliveries that refer to it. */
export const webhooks = pgTable(
  'webhooks',
  {
    webhookId: text('webhook_id').primaryKey(),
    orgId: text('org_id')
      .notNull()
      .references(() => organizations.orgId),
    url: text('url').notNull(),
    eventTypes: text('event_types').array().$type<EventFilter[]>().notNull(),
    description: text('description'),
    status: text('status').$type<WebhookStatus>().notNull(),
    disabledReason: text('disabled_reason').$type<DisabledReason>(),
    failingSince: moment('failing_since'),
    /** How often its pending deliveries were ended: each time when it was disabled or deleted. */
    endings: integer('endings').notNull().default(0),
    secretSealed: text('secret_sealed'),
    ...eventCounter(),
    createdAt: moment('created_at').notNull(),
    updatedAt: moment('updated_at').notNull(),
    deletedAt: moment('deleted_at'),
  },
  (table) => [index('webhooks_org').on(table.orgId, table.createdAt).where(sql`${table.deletedAt} IS NULL`)],
);

/** The secrets before the current one. Each also signs until it expires. They are erased with their subscription. */
export const webhookEarlierSecrets = pgTable(
  'webhook_earlier_secrets',
  {
    webhookId: text('webhook_id')
      .notNull()
      .references(() => webhooks.webhookId),
    secretId: text('secret_id').notNull(),
    secretSealed: text('secret_sealed').notNull(),
    expiresAt: moment('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.webhookId, table.secretId] }),
    index('webhook_earlier_secrets_expiry').on(table.expiresAt),
  ],
);

/**
 * Each subscription's row for the handshake between the run that delivers to it and the transactions that write
 * deliveries. A trigger inserts it with the subscription.
 */
export const webhookRuns = pgTable('webhook_runs', {
  webhookId: text('webhook_id')
    .primaryKey()
    .references(() => webhooks.webhookId),
  /**
   * A run looks for new deliveries, so nobody has to wake it. A transaction that writes a delivery reads it under a
   * shared lock. A run clears it under an exclusive lock, once it has found nothing to do.
   */
  running: boolean('running').notNull().default(false),
});

/** Numbers the runs of all subscriptions. A later run has a higher number. */
export const webhookRunNumbers = pgSequence('webhook_run_numbers');

/** One row per event and subscription; a redelivery begins a new generation of the same row. */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    deliveryId: text('delivery_id').primaryKey(),
    orgId: text('org_id')
      .notNull()
      .references(() => organizations.orgId),
    webhookId: text('webhook_id')
      .notNull()
      .references(() => webhooks.webhookId),
    eventId: text('event_id')
      .notNull()
      .references(() => events.eventId),
    eventType: text('event_type').$type<EventType>().notNull(),
    status: text('status').$type<DeliveryStatus>().notNull(),
    generation: integer('generation').notNull(),
    requested: boolean('requested').notNull(),
    priorAttempts: integer('prior_attempts').notNull(),
    nextAttemptAt: moment('next_attempt_at'),
    /**
     * The subscription's `endings` when the delivery became pending. A pending delivery with fewer endings than its
     * subscription has ended; its row is changed later.
     */
    endings: integer('endings').notNull(),
    /** The number of the run that sends it now; 0 for none. A run takes what a run with a lower number has left. */
    claimedBy: bigint('claimed_by', { mode: 'number' }).notNull().default(0),
    /** A redelivery was requested while an attempt was under way. */
    redeliveryRequested: boolean('redelivery_requested').notNull().default(false),
    requestId: text('request_id').notNull(),
    /** The trace of the change that the event reports; null where tracing is off. */
    traceparent: text('traceparent'),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('webhook_deliveries_once').on(table.eventId, table.webhookId),
    index('webhook_deliveries_webhook').on(table.webhookId, table.createdAt, table.deliveryId),
    index('webhook_deliveries_status').on(table.status, table.createdAt),
    index('webhook_deliveries_due')
      .on(table.webhookId, table.endings, table.nextAttemptAt, table.deliveryId)
      .where(sql`${table.status} = 'pending'`),
  ],
);

/**
 * Written before the request is sent, completed after. While it is pending it holds one of its subscription's places.
 */
export const webhookAttempts = pgTable(
  'webhook_attempts',
  {
    deliveryId: text('delivery_id')
      .notNull()
      .references(() => webhookDeliveries.deliveryId),
    number: integer('number').notNull(),
    webhookId: text('webhook_id').notNull(),
    at: moment('at').notNull(),
    outcome: text('outcome').$type<AttemptOutcome>().notNull(),
    responseStatus: integer('response_status'),
    /** Of the part of the answer that was read; the answer itself is not stored. */
    responseBytes: integer('response_bytes'),
    responseSha256: bytes('response_sha256'),
    durationMs: integer('duration_ms'),
    error: text('error').$type<AttemptError>(),
    /** On the database's clock: after it the place is free, even if the process died. */
    leaseExpiresAt: timestamp('lease_expires_at', { withTimezone: true }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.deliveryId, table.number] }),
    index('webhook_attempts_under_way').on(table.webhookId).where(sql`${table.outcome} = 'pending'`),
  ],
);
