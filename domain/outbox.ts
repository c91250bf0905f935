/**
 * What the outbox can ask of Temporal, in the service's own words; the dispatcher alone knows what a kind means
 * there. Each request names a workflow by its object, starts it where it does not run, and may tell it one fact.
 */
import type { Settlement } from './settlement.ts';
import type { Delivery } from './webhook.ts';

export const OUTBOX_KINDS = [
  'settlement',
  'sandbox_collection',
  'sandbox_event',
  'verification',
  'sandbox_verification',
  'webhook_delivery',
  'otp',
] as const;
export type OutboxKind = (typeof OUTBOX_KINDS)[number];

/** Facts, in the past tense. They carry nothing: the workflow reads what was committed (design: evidence by doorbell). */
export const OUTBOX_SIGNALS = [
  'evidenceRecorded',
  'canceled',
  'clockAdvanced',
  'verificationDecided',
  'retryRequested',
  'subscriptionChanged',
  'placeFreed',
  'redispatched',
] as const;
export type OutboxSignal = (typeof OUTBOX_SIGNALS)[number];

/** Ids, enums and money alone: it becomes search attributes, memo and workflow input, which operators can read. */
export type OutboxContext = Readonly<Record<string, string>>;

export type OutboxMessage = {
  readonly kind: OutboxKind;
  readonly objectId: string;
  readonly signal: OutboxSignal | null;
  readonly context: OutboxContext;
  readonly requestId: string;
};

/** What is to be known of a settlement to start or ring its workflow. */
export const settlementMessage = (
  settlement: Pick<Settlement, 'settlementId' | 'orgId' | 'corridor' | 'paymentMethod'>,
  signal: OutboxSignal | null,
  requestId: string,
): OutboxMessage => ({
  kind: 'settlement',
  objectId: settlement.settlementId,
  signal,
  context: { orgId: settlement.orgId, corridor: settlement.corridor, paymentMethod: settlement.paymentMethod },
  requestId,
});

/** What is to be known of a delivery to start or ring the workflow of its present generation. */
export const deliveryMessage = (
  delivery: Pick<Delivery, 'deliveryId' | 'webhookId' | 'orgId' | 'generation'>,
  signal: OutboxSignal | null,
  requestId: string,
): OutboxMessage => ({
  kind: 'webhook_delivery',
  objectId: delivery.deliveryId,
  signal,
  context: { orgId: delivery.orgId, webhookId: delivery.webhookId, generation: String(delivery.generation) },
  requestId,
});
