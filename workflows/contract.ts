/**
 * What other folders may use of the workflows: queues, signals, updates, search attributes and inputs. They import no
 * other value from this folder.
 */
import { defineSearchAttributeKey } from '@temporalio/common';
import { defineSignal, defineUpdate } from '@temporalio/workflow';
import type { OutboxSignal } from '../domain/outbox.ts';
import type { SettlementStatus } from '../domain/settlement/state.ts';
import type { TaskQueue } from '../domain/task-queue.ts';
import type { LaneReport } from '../domain/webhook.ts';
import type * as workflows from './index.ts';

export type Workflows = typeof workflows;

export const TASK_QUEUE: TaskQueue = 'settlement';
/** Deliveries have workers of their own, so that a subscriber that hangs does not delay settlements. */
export const DELIVERY_TASK_QUEUE: TaskQueue = 'webhook-delivery';

/**
 * Facts that were committed. A signal carries no data: the workflow reads the fact from the database. So a signal that
 * is lost, doubled, early or out of order changes nothing.
 */
export const evidenceRecorded = defineSignal('evidenceRecorded' satisfies OutboxSignal);
export const canceled = defineSignal('canceled' satisfies OutboxSignal);
export const clockAdvanced = defineSignal('clockAdvanced' satisfies OutboxSignal);
export const verificationDecided = defineSignal('verificationDecided' satisfies OutboxSignal);
export const retriesAdded = defineSignal('retriesAdded' satisfies OutboxSignal);
/** An operator redispatched the object: its workflow is started if it does not run, and signalled if it does. */
export const redispatched = defineSignal('redispatched' satisfies OutboxSignal);

/** What a lane did in the last minute. Its activity sends this to the run, which shows it. */
export const laneReported = defineSignal<[LaneReport]>('laneReported');

/**
 * Operators have agreed on the outcome of a payout (contract §6). The update carries no decision: the run reads it from
 * the database. The answer is the settlement's status afterwards.
 */
export const resolveReview = defineUpdate<{ status: SettlementStatus }, []>('resolveReview');

/** Creates a verification's applicant at the identity provider, and ends once it is stored. */
export const createApplicant = defineUpdate<void, []>('createApplicant');

/** Registered when a worker starts, and checked for type. Ids and enums only: Temporal cannot encrypt them. */
export const SEARCH_ATTRIBUTES = {
  OrgId: defineSearchAttributeKey('OrgId', 'KEYWORD'),
  SettlementId: defineSearchAttributeKey('SettlementId', 'KEYWORD'),
  SettlementStatus: defineSearchAttributeKey('SettlementStatus', 'KEYWORD'),
  WaitingFor: defineSearchAttributeKey('WaitingFor', 'KEYWORD'),
  Corridor: defineSearchAttributeKey('Corridor', 'KEYWORD'),
  PaymentMethod: defineSearchAttributeKey('PaymentMethod', 'KEYWORD'),
} as const;

/** The input of the workflows of a settlement: only ids. */
export type SettlementInput = { readonly settlementId: string; readonly orgId: string };

/** The input of the workflows of a verification: only ids. */
export type VerificationInput = { readonly verificationId: string; readonly orgId: string };

/** The input of the workflow of a one-time code: only an id. */
export type OtpInput = { readonly challengeId: string };

/** The input of the workflow of a subscription: only ids. */
export type WebhookSubscriptionInput = { readonly webhookId: string; readonly orgId: string };

/** The input of the workflow of a lane: its number, from 0. */
export type WebhookLaneInput = { readonly lane: number };

/** Input of `sweep`: how many sweeps a run makes. */
export type SweepInput = { readonly sweeps: number };

/**
 * From one sweep to the next, in a run and by the schedule. A lost run is restarted within a minute (contract §6): 15 s
 * until its object counts as unchanged, at most this time until the next sweep, and a second until the dispatcher has
 * started it.
 */
export const SWEEP_INTERVAL = '20 seconds';
