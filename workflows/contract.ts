/**
 * What the outside may know of the workflows: queues, ids, signals, search attributes, and the workflow types by
 * name. The API and the worker's dispatcher import values from here and nothing else from this folder.
 */
import { defineSearchAttributeKey } from '@temporalio/common';
import { defineSignal } from '@temporalio/workflow';
import type { OutboxSignal } from '../domain/outbox.ts';
import type * as workflows from './index.ts';

export type Workflows = typeof workflows;

export const TASK_QUEUE = 'settlement';

export const settlementWorkflowId = (settlementId: string): string => `settlement:${settlementId}`;
export const sandboxCollectionWorkflowId = (settlementId: string): string => `sandbox-collection:${settlementId}`;

/**
 * Facts that were committed. A signal carries nothing: whoever hears one reads the database, so that lost,
 * doubled, early and reordered signals change nothing.
 */
export const evidenceRecorded = defineSignal('evidenceRecorded' satisfies OutboxSignal);
export const canceled = defineSignal('canceled' satisfies OutboxSignal);
export const clockAdvanced = defineSignal('clockAdvanced' satisfies OutboxSignal);
export const verificationDecided = defineSignal('verificationDecided' satisfies OutboxSignal);

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
