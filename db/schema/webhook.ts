import { sql } from 'drizzle-orm';
import { boolean, index, integer, pgTable, primaryKey, text, timestamp, uniqueIndex } from 'drizzle-orm/pg-core';
import type { EventType } from '../../domain/event.ts';
import type {
  AttemptError,
  AttemptOutcome,
  DeliveryStatus,
  DisabledReason,
  EventFilter,
  WebhookStatus,
} from '../../domain/webhook.ts';
import { bytes, moment } from './column.ts';
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
    secretSealed: text('secret_sealed'),
    /** The secret before the latest rotation: it also signs until it expires. */
    previousSecretSealed: text('previous_secret_sealed'),
    previousSecretExpiresAt: moment('previous_secret_expires_at'),
    createdAt: moment('created_at').notNull(),
    updatedAt: moment('updated_at').notNull(),
    deletedAt: moment('deleted_at'),
  },
  (table) => [index('webhooks_org').on(table.orgId, table.createdAt).where(sql`${table.deletedAt} IS NULL`)],
);

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
    /** On the database's clock: since when the delivery waits for one of its subscription's places. */
    waitingSince: timestamp('waiting_since', { withTimezone: true }),
    requestId: text('request_id').notNull(),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('webhook_deliveries_once').on(table.eventId, table.webhookId),
    index('webhook_deliveries_webhook').on(table.webhookId, table.createdAt, table.deliveryId),
    index('webhook_deliveries_status').on(table.status, table.createdAt),
    index('webhook_deliveries_pending').on(table.webhookId).where(sql`${table.status} = 'pending'`),
    index('webhook_deliveries_waiting')
      .on(table.webhookId, table.waitingSince)
      .where(sql`${table.waitingSince} IS NOT NULL`),
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
