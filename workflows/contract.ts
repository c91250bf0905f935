/**
 * What the outside may know of the workflows: queues, signals, search attributes, and the workflow types by name.
 * The API and the worker's dispatcher import values from here and nothing else from this folder.
 */
import { defineSearchAttributeKey } from '@temporalio/common';
import { defineSignal, defineUpdate } from '@temporalio/workflow';
import type { OutboxSignal } from '../domain/outbox.ts';
import type { Resolution } from '../domain/review.ts';
import type { SettlementStatus } from '../domain/settlement.ts';
import type * as workflows from './index.ts';

export type Workflows = typeof workflows;

export const TASK_QUEUE = 'settlement';
/** Deliveries have workers of their own, so that subscribers that hang cost settlements nothing. */
export const DELIVERY_TASK_QUEUE = 'webhook-delivery';

/**
 * Facts that were committed. A signal carries nothing: whoever hears one reads the database, so that lost,
 * doubled, early and reordered signals change nothing.
 */
export const evidenceRecorded = defineSignal('evidenceRecorded' satisfies OutboxSignal);
export const canceled = defineSignal('canceled' satisfies OutboxSignal);
export const clockAdvanced = defineSignal('clockAdvanced' satisfies OutboxSignal);
export const verificationDecided = defineSignal('verificationDecided' satisfies OutboxSignal);
export const retryRequested = defineSignal('retryRequested' satisfies OutboxSignal);
export const subscriptionChanged = defineSignal('subscriptionChanged' satisfies OutboxSignal);
export const placeFreed = defineSignal('placeFreed' satisfies OutboxSignal);
/** An operator had the workflow started where it did not run, and signalled where it did. */
export const redispatched = defineSignal('redispatched' satisfies OutboxSignal);

/** What an operator decides about a payout of unknown outcome (contract §6); answers with the settlement's status after it. */
export const resolveReview = defineUpdate<{ status: SettlementStatus }, [Resolution]>('resolveReview');

/** Registered at start and checked for type. Ids and enums only: these are never encrypted. */
export const SEARCH_ATTRIBUTES = {
  OrgId: defineSearchAttributeKey('OrgId', 'KEYWORD'),
  SettlementId: defineSearchAttributeKey('SettlementId', 'KEYWORD'),
  SettlementStatus: defineSearchAttributeKey('SettlementStatus', 'KEYWORD'),
  WaitingFor: defineSearchAttributeKey('WaitingFor', 'KEYWORD'),
  Corridor: defineSearchAttributeKey('Corridor', 'KEYWORD'),
  PaymentMethod: defineSearchAttributeKey('PaymentMethod', 'KEYWORD'),
} as const;

/** The settlement workflow's input: ids alone. */
export type SettlementInput = { readonly settlementId: string; readonly orgId: string };

/** The verification workflows' input: ids alone. */
export type VerificationInput = { readonly verificationId: string; readonly orgId: string };

/** The one-time code workflow's input: an id alone. */
export type OtpInput = { readonly challengeId: string };

/** The delivery workflow's input; `attempt` only where a long one continues as a new run. */
export type WebhookDeliveryInput = {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly orgId: string;
  readonly generation: number;
  readonly attempt?: number;
};
