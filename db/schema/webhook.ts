import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  pgSequence,
  pgTable,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { EventType } from '../../domain/event.ts';
import type {
  AttemptError,
  AttemptOutcome,
  DeliveryStatus,
  DisabledReason,
  EventFilter,
  ReplayStatus,
  WebhookStatus,
} from '../../domain/webhook.ts';
import { bytes, eventCounter, moment, reference } from './column.ts';
import { organizations } from './organization.ts';

/** Subscriptions. Secrets are sealed, and erased at deletion; the row stays for the deliveries that refer to it. */
export const webhooks = pgTable(
  'webhooks',
  {
    webhookId: text('webhook_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    url: text('url').notNull(),
    eventTypes: text('event_types').array().$type<EventFilter[]>().notNull(),
    description: text('description'),
    status: text('status').$type<WebhookStatus>().notNull(),
    disabledReason: text('disabled_reason').$type<DisabledReason>(),
    failingSince: moment('failing_since'),
    /** Renewed at most once an hour: otherwise each failure of a burst would write it. */
    lastFailedAt: moment('last_failed_at'),
    /** How often its pending deliveries were ended: each time when it was disabled or deleted. */
    endings: integer('endings').notNull().default(0),
    /** Which lane sends to it: each lane has a range of the keys. */
    laneKey: smallint('lane_key').notNull(),
    /** When its workflow looks for due retries; null while it does not run. */
    retriesAt: moment('retries_at'),
    secretSealed: text('secret_sealed'),
    ...eventCounter(),
    createdAt: moment('created_at').notNull(),
    updatedAt: moment('updated_at').notNull(),
    deletedAt: moment('deleted_at'),
  },
  (table) => [
    index('webhooks_org').on(table.orgId, table.createdAt).where(sql`${table.deletedAt} IS NULL`),
    index('webhooks_deleted').on(table.orgId, table.webhookId).where(sql`${table.deletedAt} IS NOT NULL`),
    index('webhooks_failing').on(table.webhookId).where(sql`${table.failingSince} IS NOT NULL`),
  ],
);

/** The secrets before the current one. Each also signs until it expires. They are erased with their subscription. */
export const webhookEarlierSecrets = pgTable(
  'webhook_earlier_secrets',
  {
    webhookId: reference('webhook_id', () => webhooks.webhookId),
    secretId: text('secret_id').notNull(),
    secretSealed: text('secret_sealed').notNull(),
    expiresAt: moment('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.webhookId, table.secretId] }),
    index('webhook_earlier_secrets_expiry').on(table.expiresAt),
  ],
);

/** Numbers the activities that send. A later one has a higher number. */
export const webhookClaimants = pgSequence('webhook_claimants');

/** One row per event and subscription; a redelivery begins a new generation of the same row. */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    deliveryId: text('delivery_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    webhookId: reference('webhook_id', () => webhooks.webhookId),
    eventId: text('event_id').notNull(),
    eventType: text('event_type').$type<EventType>().notNull(),
    status: text('status').$type<DeliveryStatus>().notNull(),
    generation: integer('generation').notNull(),
    /** How many attempts there were before this generation. */
    priorAttempts: integer('prior_attempts').notNull(),
    attemptCount: integer('attempt_count').notNull().default(0),
    nextAttemptAt: moment('next_attempt_at'),
    /** Its subscription's key while a lane sends it once it is due. Without one, the subscription's workflow does. */
    laneKey: smallint('lane_key'),
    /**
     * The subscription's `endings` when the delivery became pending. A pending delivery with fewer endings than its
     * subscription has ended; its row is changed later.
     */
    endings: integer('endings').notNull(),
    /** The number of the activity that sends it now; 0 for none. A later one takes what an earlier one has left. */
    claimedBy: bigint('claimed_by', { mode: 'number' }).notNull().default(0),
    claimedAt: moment('claimed_at'),
    /** A redelivery was requested while an attempt was under way. */
    redeliveryRequested: boolean('redelivery_requested').notNull().default(false),
    /** When its last generations began, oldest first; null if it was never redelivered. */
    redeliveredAt: moment('redelivered_at').array(),
    requestId: text('request_id').notNull(),
    /** The trace of the change that the event reports; null where tracing is off. */
    traceparent: text('traceparent'),
    createdAt: moment('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('webhook_deliveries_once').on(table.eventId, table.webhookId),
    index('webhook_deliveries_webhook').on(table.webhookId, table.createdAt, table.deliveryId),
    index('webhook_deliveries_unsucceeded')
      .on(table.status, table.createdAt)
      .where(sql`${table.status} <> 'succeeded'`),
    index('webhook_deliveries_ended')
      .on(table.webhookId, table.status, table.createdAt, table.deliveryId)
      .where(sql`${table.status} IN ('exhausted', 'skipped', 'canceled')`),
    index('webhook_deliveries_lane')
      .on(table.laneKey, table.orgId, table.webhookId, table.nextAttemptAt, table.deliveryId)
      .where(sql`${table.laneKey} IS NOT NULL`),
    index('webhook_deliveries_unclaimed')
      .on(table.laneKey, table.orgId, table.webhookId, table.nextAttemptAt, table.deliveryId)
      .where(sql`${table.laneKey} IS NOT NULL AND ${table.claimedBy} = 0`),
    index('webhook_deliveries_retries')
      .on(table.webhookId, table.nextAttemptAt, table.deliveryId)
      .where(sql`${table.status} = 'pending' AND ${table.laneKey} IS NULL`),
  ],
);

/** Deliveries that are sent again. One replay of a subscription runs at a time. */
export const webhookReplays = pgTable(
  'webhook_replays',
  {
    replayId: text('replay_id').primaryKey(),
    orgId: reference('org_id', () => organizations.orgId),
    webhookId: reference('webhook_id', () => webhooks.webhookId),
    since: moment('since').notNull(),
    until: moment('until'),
    statuses: text('statuses').array().$type<DeliveryStatus[]>().notNull(),
    eventTypes: text('event_types').array().$type<EventType[]>(),
    status: text('status').$type<ReplayStatus>().notNull(),
    sent: integer('sent').notNull().default(0),
    skipped: integer('skipped').notNull().default(0),
    /** The last delivery that was looked at, in the order of creation. */
    reachedAt: moment('reached_at').notNull(),
    reachedId: text('reached_id').notNull().default(''),
    requestId: text('request_id').notNull(),
    createdAt: moment('created_at').notNull(),
    finishedAt: moment('finished_at'),
  },
  (table) => [uniqueIndex('webhook_replays_running').on(table.webhookId).where(sql`${table.status} = 'running'`)],
);

/**
 * What was sent, and what became of it. Rows are only inserted; they lie in months, by the time in the delivery's id.
 */
export const webhookAttempts = pgTable(
  'webhook_attempts',
  {
    deliveryId: text('delivery_id').notNull(),
    number: integer('number').notNull(),
    at: moment('at').notNull(),
    outcome: text('outcome').$type<AttemptOutcome>().notNull(),
    responseStatus: integer('response_status'),
    /** Of the part of the answer that was read; the answer itself is not stored. */
    responseBytes: integer('response_bytes'),
    responseSha256: bytes('response_sha256'),
    durationMs: integer('duration_ms').notNull(),
    error: text('error').$type<AttemptError>(),
  },
  (table) => [primaryKey({ columns: [table.deliveryId, table.number] })],
);
