/**
 * Everything that is stored about one object, for an operator, who knows its id and no organization. Sealed columns
 * and the bodies of events are never read. Lists are bounded.
 */
import { and, asc, desc, eq, gt, inArray, or, sql } from 'drizzle-orm';
import { EVENT_PROVIDERS } from '../../domain/evidence.ts';
import { COLLECTORS } from '../../domain/payment-method.ts';
import { DELIVERY_STATUSES } from '../../domain/webhook.ts';
import type { Queryable } from '../client.ts';
import { apiKeys } from '../schema/api-key.ts';
import { auditEntries } from '../schema/audit.ts';
import { certificates } from '../schema/certificate.ts';
import { events } from '../schema/event.ts';
import { evidence, providerEvents } from '../schema/evidence.ts';
import { organizations } from '../schema/organization.ts';
import { outbox } from '../schema/outbox.ts';
import { recipients } from '../schema/recipient.ts';
import { postings, settlementExceptions, settlements, settlementTransitions } from '../schema/settlement.ts';
import { verifications } from '../schema/verification.ts';
import { webhookAttempts, webhookDeliveries, webhooks } from '../schema/webhook.ts';
import { toSettlement } from './settlement.ts';
import { shownNextAttemptAt, shownStatus } from './webhook-delivery.ts';

/** Of each list about an object. */
const ROWS_MAX = 50;
/** A request's deliveries are looked for among those of the last week: the column has no index. */
const DELIVERY_DAYS = 7;

export const OBJECT_KINDS = [
  'settlement',
  'verification',
  'subscription',
  'delivery',
  'organization',
  'recipient',
  'certificate',
  'provider_event',
  'request',
] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

/** What has this id; undefined for an unknown id. A caller can choose a request id, so it is looked for last. */
export async function findObjectKind(db: Queryable, id: string): Promise<ObjectKind | undefined> {
  const { rows } = await db.execute<{ kind: ObjectKind }>(sql`
    SELECT 'settlement' AS kind FROM settlements WHERE settlement_id = ${id}
    UNION ALL SELECT 'verification' FROM verifications WHERE verification_id = ${id}
    UNION ALL SELECT 'subscription' FROM webhooks WHERE webhook_id = ${id}
    UNION ALL SELECT 'delivery' FROM webhook_deliveries WHERE delivery_id = ${id}
    UNION ALL SELECT 'organization' FROM organizations WHERE org_id = ${id}
    UNION ALL SELECT 'recipient' FROM recipients WHERE recipient_id = ${id}
    UNION ALL SELECT 'certificate' FROM certificates WHERE cert_id = ${id}
    UNION ALL (SELECT 'provider_event' FROM provider_events
      WHERE provider = ANY (${sql.param([...EVENT_PROVIDERS])}) AND event_id = ${id} LIMIT 1)`);
  if (rows[0]) return rows[0].kind;
  const caused = await listOfRequest(db, id);
  return Object.values(caused).some((list) => list.length > 0) ? 'request' : undefined;
}

export async function findSettlementObject(db: Queryable, settlementId: string) {
  const [row] = await db.select().from(settlements).where(eq(settlements.settlementId, settlementId));
  return row && toSettlement(row);
}

export const listTransitions = (db: Queryable, settlementId: string) =>
  db
    .select()
    .from(settlementTransitions)
    .where(eq(settlementTransitions.settlementId, settlementId))
    .orderBy(asc(settlementTransitions.sequence));

export const listEvidence = (db: Queryable, settlementId: string) =>
  db
    .select({
      evidenceId: evidence.evidenceId,
      provider: evidence.provider,
      eventId: evidence.eventId,
      kind: evidence.kind,
      amountMinor: evidence.amountMinor,
      currency: evidence.currency,
      failure: evidence.failure,
      pending: evidence.pending,
      receivedAt: evidence.receivedAt,
    })
    .from(evidence)
    .where(eq(evidence.settlementId, settlementId))
    .orderBy(asc(evidence.position))
    .limit(ROWS_MAX);

export const listExceptions = (db: Queryable, settlementId: string) =>
  db
    .select()
    .from(settlementExceptions)
    .where(eq(settlementExceptions.settlementId, settlementId))
    .orderBy(asc(settlementExceptions.exceptionId))
    .limit(ROWS_MAX);

/** In the order in which they were booked. */
export const listJournal = (db: Queryable, settlementId: string) =>
  db
    .select()
    .from(postings)
    .where(eq(postings.settlementId, settlementId))
    .orderBy(asc(postings.at), asc(postings.step), asc(postings.line));

/** Outbox rows of the object, or of a simulation for it. */
export const listOutboxRows = (db: Queryable, objectId: string) =>
  db
    .select({
      kind: outbox.kind,
      signal: outbox.signal,
      attempts: outbox.attempts,
      lastError: outbox.lastError,
      createdAt: outbox.createdAt,
      /** On the database's clock. */
      ageMs: sql<number>`(extract(epoch FROM now() - ${outbox.createdAt}) * 1000)::float8`,
    })
    .from(outbox)
    .where(or(eq(outbox.objectId, objectId), sql`${outbox.context}->>'settlementId' = ${objectId}`))
    .orderBy(asc(outbox.outboxId))
    .limit(ROWS_MAX);

/** The object's events, in their order. */
export const listEvents = (db: Queryable, objectId: string) =>
  db
    .select({ eventId: events.eventId, type: events.type, sequence: events.sequence, createdAt: events.createdAt })
    .from(events)
    .where(eq(events.objectId, objectId))
    .orderBy(asc(events.sequence))
    .limit(ROWS_MAX);

const deliveryColumns = {
  deliveryId: webhookDeliveries.deliveryId,
  webhookId: webhookDeliveries.webhookId,
  eventType: webhookDeliveries.eventType,
  status: shownStatus,
  nextAttemptAt: shownNextAttemptAt,
  createdAt: webhookDeliveries.createdAt,
} as const;

/** The deliveries of the object's events. */
export const listDeliveriesAbout = (db: Queryable, objectId: string) =>
  db
    .select(deliveryColumns)
    .from(webhookDeliveries)
    .innerJoin(events, eq(events.eventId, webhookDeliveries.eventId))
    .where(eq(events.objectId, objectId))
    .orderBy(asc(events.sequence), asc(webhookDeliveries.deliveryId))
    .limit(ROWS_MAX);

/** The latest deliveries of a subscription. */
export const listDeliveriesTo = (db: Queryable, webhookId: string) =>
  db
    .select(deliveryColumns)
    .from(webhookDeliveries)
    .where(eq(webhookDeliveries.webhookId, webhookId))
    .orderBy(desc(webhookDeliveries.createdAt), desc(webhookDeliveries.deliveryId))
    .limit(ROWS_MAX);

/** @param objectIds of the object, and of what belongs to it */
export const listAuditEntries = (db: Queryable, ...objectIds: string[]) =>
  db
    .select()
    .from(auditEntries)
    .where(inArray(auditEntries.objectId, objectIds))
    .orderBy(asc(auditEntries.at), asc(auditEntries.auditId))
    .limit(ROWS_MAX);

export async function findVerificationObject(db: Queryable, verificationId: string) {
  const [row] = await db.select().from(verifications).where(eq(verifications.verificationId, verificationId));
  return row;
}

export async function findWebhookObject(db: Queryable, webhookId: string) {
  const [row] = await db
    .select({
      orgId: webhooks.orgId,
      url: webhooks.url,
      eventTypes: webhooks.eventTypes,
      status: webhooks.status,
      disabledReason: webhooks.disabledReason,
      failingSince: webhooks.failingSince,
      createdAt: webhooks.createdAt,
      updatedAt: webhooks.updatedAt,
      deletedAt: webhooks.deletedAt,
    })
    .from(webhooks)
    .where(eq(webhooks.webhookId, webhookId));
  return row;
}

export async function countDeliveriesTo(db: Queryable, webhookId: string) {
  const { rows } = await db.execute<{ status: string; count: number }>(sql`
    SELECT ${shownStatus} AS status, count(*)::int AS count FROM webhook_deliveries WHERE webhook_id = ${webhookId}
    GROUP BY 1 ORDER BY 1`);
  return rows;
}

export async function findDeliveryObject(db: Queryable, deliveryId: string) {
  const [row] = await db
    .select({
      ...deliveryColumns,
      orgId: webhookDeliveries.orgId,
      eventId: webhookDeliveries.eventId,
      requestId: webhookDeliveries.requestId,
      objectType: events.objectType,
      objectId: events.objectId,
      eventAt: events.createdAt,
      url: webhooks.url,
    })
    .from(webhookDeliveries)
    .innerJoin(events, eq(events.eventId, webhookDeliveries.eventId))
    .innerJoin(webhooks, eq(webhooks.webhookId, webhookDeliveries.webhookId))
    .where(eq(webhookDeliveries.deliveryId, deliveryId));
  return row;
}

export const listAttemptsOf = (db: Queryable, deliveryId: string) =>
  db
    .select({
      number: webhookAttempts.number,
      at: webhookAttempts.at,
      outcome: webhookAttempts.outcome,
      responseStatus: webhookAttempts.responseStatus,
      durationMs: webhookAttempts.durationMs,
      error: webhookAttempts.error,
    })
    .from(webhookAttempts)
    .where(eq(webhookAttempts.deliveryId, deliveryId))
    .orderBy(asc(webhookAttempts.number))
    .limit(ROWS_MAX);

export async function findOrganizationObject(db: Queryable, orgId: string) {
  const [row] = await db.select().from(organizations).where(eq(organizations.orgId, orgId));
  return row;
}

export const listKeysOf = (db: Queryable, orgId: string) =>
  db
    .select({
      keyId: apiKeys.keyId,
      name: apiKeys.name,
      scope: apiKeys.scope,
      status: apiKeys.status,
      prefix: apiKeys.prefix,
      createdAt: apiKeys.createdAt,
      lastUsedAt: apiKeys.lastUsedAt,
      lastUsedFrom: apiKeys.lastUsedFrom,
      allowedCidrs: apiKeys.allowedCidrs,
      expiresAt: apiKeys.expiresAt,
    })
    .from(apiKeys)
    .where(eq(apiKeys.orgId, orgId))
    .orderBy(asc(apiKeys.createdAt), asc(apiKeys.keyId))
    .limit(ROWS_MAX);

export const listWebhooksOf = (db: Queryable, orgId: string) =>
  db
    .select({
      webhookId: webhooks.webhookId,
      url: webhooks.url,
      status: webhooks.status,
      disabledReason: webhooks.disabledReason,
      failingSince: webhooks.failingSince,
      deletedAt: webhooks.deletedAt,
    })
    .from(webhooks)
    .where(eq(webhooks.orgId, orgId))
    .orderBy(asc(webhooks.createdAt), asc(webhooks.webhookId))
    .limit(ROWS_MAX);

const settlementColumns = {
  settlementId: settlements.settlementId,
  status: settlements.status,
  amountMinor: settlements.amountMinor,
  sourceCurrency: settlements.sourceCurrency,
  updatedAt: settlements.updatedAt,
} as const;

/** The latest settlements of an organization. */
export const listSettlementsOf = (db: Queryable, orgId: string) =>
  db
    .select(settlementColumns)
    .from(settlements)
    .where(eq(settlements.orgId, orgId))
    .orderBy(desc(settlements.createdAt), desc(settlements.settlementId))
    .limit(ROWS_MAX);

/** The latest settlements to a recipient. */
export const listSettlementsTo = (db: Queryable, recipientId: string) =>
  db
    .select(settlementColumns)
    .from(settlements)
    .where(eq(settlements.recipientId, recipientId))
    .orderBy(desc(settlements.createdAt), desc(settlements.settlementId))
    .limit(ROWS_MAX);

export async function findRecipientObject(db: Queryable, recipientId: string) {
  const [row] = await db
    .select({
      orgId: recipients.orgId,
      kind: recipients.kind,
      entityType: recipients.entityType,
      name: recipients.name,
      country: recipients.country,
      email: recipients.email,
      phone: recipients.phone,
      bankDetails: recipients.bankDetails,
      mobileDetails: recipients.mobileDetails,
      isActive: recipients.isActive,
      verificationStatus: recipients.verificationStatus,
      createdAt: recipients.createdAt,
      updatedAt: recipients.updatedAt,
    })
    .from(recipients)
    .where(eq(recipients.recipientId, recipientId));
  return row;
}

export const listVerificationsOf = (db: Queryable, recipientId: string) =>
  db
    .select({
      verificationId: verifications.verificationId,
      verificationType: verifications.verificationType,
      provider: verifications.provider,
      status: verifications.status,
      createdAt: verifications.createdAt,
      decidedAt: verifications.decidedAt,
      expiresAt: verifications.expiresAt,
    })
    .from(verifications)
    .where(eq(verifications.recipientId, recipientId))
    .orderBy(asc(verifications.createdAt), asc(verifications.verificationId))
    .limit(ROWS_MAX);

export async function findCertificateObject(db: Queryable, certId: string) {
  const [row] = await db
    .select({
      orgId: certificates.orgId,
      settlementId: certificates.settlementId,
      sha256: certificates.sha256,
      signature: certificates.signature,
      issuedAt: certificates.issuedAt,
    })
    .from(certificates)
    .where(eq(certificates.certId, certId));
  return row;
}

/** Two providers may use one id. */
export const listProviderEvents = (db: Queryable, eventId: string) =>
  db
    .select({
      provider: providerEvents.provider,
      type: providerEvents.type,
      bodySha256: providerEvents.bodySha256,
      matched: providerEvents.matched,
      receivedAt: providerEvents.receivedAt,
    })
    .from(providerEvents)
    .where(and(inArray(providerEvents.provider, EVENT_PROVIDERS), eq(providerEvents.eventId, eventId)));

export const listEvidenceOfEvent = (db: Queryable, eventId: string) =>
  db
    .select({
      evidenceId: evidence.evidenceId,
      settlementId: evidence.settlementId,
      provider: evidence.provider,
      kind: evidence.kind,
      amountMinor: evidence.amountMinor,
      currency: evidence.currency,
      pending: evidence.pending,
    })
    .from(evidence)
    .where(and(inArray(evidence.provider, COLLECTORS), eq(evidence.eventId, eventId)));

/** What a request, or an operator's command, began. */
export async function listOfRequest(db: Queryable, requestId: string) {
  const since = sql`now() - make_interval(days => ${DELIVERY_DAYS})`;
  return {
    settlements: await db
      .select({ ...settlementColumns, orgId: settlements.orgId })
      .from(settlements)
      .where(eq(settlements.requestId, requestId))
      .orderBy(asc(settlements.createdAt), asc(settlements.settlementId))
      .limit(ROWS_MAX),
    verifications: await db
      .select({
        verificationId: verifications.verificationId,
        orgId: verifications.orgId,
        status: verifications.status,
        createdAt: verifications.createdAt,
      })
      .from(verifications)
      .where(eq(verifications.requestId, requestId))
      .orderBy(asc(verifications.createdAt), asc(verifications.verificationId))
      .limit(ROWS_MAX),
    deliveries: await db
      .select({ ...deliveryColumns, orgId: webhookDeliveries.orgId })
      .from(webhookDeliveries)
      // With all statuses, the index of status and time serves.
      .where(
        and(
          inArray(webhookDeliveries.status, [...DELIVERY_STATUSES]),
          gt(webhookDeliveries.createdAt, since),
          eq(webhookDeliveries.requestId, requestId),
        ),
      )
      .orderBy(asc(webhookDeliveries.createdAt), asc(webhookDeliveries.deliveryId))
      .limit(ROWS_MAX),
    outbox: await db
      .select({
        kind: outbox.kind,
        objectId: outbox.objectId,
        signal: outbox.signal,
        attempts: outbox.attempts,
        lastError: outbox.lastError,
        createdAt: outbox.createdAt,
      })
      .from(outbox)
      .where(eq(outbox.requestId, requestId))
      .orderBy(asc(outbox.outboxId))
      .limit(ROWS_MAX),
  };
}
