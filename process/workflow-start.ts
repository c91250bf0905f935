/**
 * What each kind of outbox row starts in Temporal: the workflow, its permanent id, its input and what operators see of
 * it. A row with a signal also starts the workflow if it does not run: so the next signal restores a lost workflow.
 */
import type { WorkflowStartOptions } from '@temporalio/client';
import type { WorkflowIdReusePolicy } from '@temporalio/common';
import { type OutboxKind, type OutboxMessage, settlementOfMessage } from '../domain/outbox.ts';
import {
  laneWorkflowId,
  otpWorkflowId,
  sandboxCollectionWorkflowId,
  sandboxEventWorkflowId,
  sandboxVerificationWorkflowId,
  settlementWorkflowId,
  verificationWorkflowId,
  webhookSubscriptionWorkflowId,
} from '../domain/workflow-id.ts';
import { DELIVERY_TASK_QUEUE, SEARCH_ATTRIBUTES, TASK_QUEUE, type Workflows } from '../workflows/contract.ts';

export type WorkflowStart = {
  readonly workflowType: keyof Workflows;
  readonly signal: string | undefined;
  readonly options: WorkflowStartOptions & { args: object[] };
};

type Described = {
  readonly workflowType: keyof Workflows;
  readonly workflowId: string;
  readonly args: readonly [object];
  readonly summary: string;
  readonly details?: string;
  readonly taskQueue?: string;
};

type StartOptions = {
  /** Where operators read docs/operations.md; the run shows links to it. */
  readonly runbookUrl?: string | undefined;
  /** A new run begins after this time, or with the next signal. */
  readonly startDelayMs?: number;
};

export function workflowStartOf(
  message: OutboxMessage,
  { runbookUrl, startDelayMs = 0 }: StartOptions = {},
): WorkflowStart {
  const { workflowType, workflowId, args, summary, details, taskQueue = TASK_QUEUE } = describe(message);
  return {
    workflowType,
    signal: message.signal ?? undefined,
    options: {
      workflowId,
      taskQueue,
      args: [...args],
      workflowIdConflictPolicy: rereadMessage(message) === undefined ? 'USE_EXISTING' : 'FAIL',
      workflowIdReusePolicy: reusePolicyOf(message),
      memo: { requestId: message.requestId, ...(runbookUrl === undefined ? {} : { runbook: runbookUrl }) },
      ...(startDelayMs === 0 ? {} : { startDelay: startDelayMs }),
      staticSummary: summary,
      ...(details === undefined ? {} : { staticDetails: details }),
      typedSearchAttributes: searchAttributesOf(message),
    },
  };
}

/**
 * What to send when a new object's workflow has a run already: that run reads its object again. Usually the row was
 * dispatched before, and nothing has changed. But after PostgreSQL came back without its last moments, a request sent
 * again creates an object whose run is older than it, and waits for what the old object waited for.
 *
 * @returns undefined for a message that needs nothing more once there is a run
 */
export function rereadMessage(message: OutboxMessage): OutboxMessage | undefined {
  const isNew = message.signal === null && (message.kind === 'settlement' || message.kind === 'verification');
  return isNew ? { ...message, signal: 'redispatched' } : undefined;
}

/**
 * Whether a workflow whose run has ended is started again. One whose run was terminated, or ended by a fault, has not
 * done its work: every row starts it again. A completed one is started again only by a row that is written for an open
 * object: PostgreSQL may have been restored to a moment before the run completed. Every run reads the database first,
 * so a run for an object that has ended does nothing. A subscription's workflow completes whenever no retry waits, and
 * starts again with the next one. A lane's completes when there are to be fewer lanes. The workflow of a one-time code
 * is never started again, because a second run could mail the code twice.
 */
function reusePolicyOf({ kind, signal }: OutboxMessage): WorkflowIdReusePolicy {
  if (kind === 'otp') return 'REJECT_DUPLICATE';
  if (kind === 'webhook_subscription' || kind === 'webhook_lane') return 'ALLOW_DUPLICATE';
  return signal === 'redispatched' ? 'ALLOW_DUPLICATE' : 'ALLOW_DUPLICATE_FAILED_ONLY';
}

/** Whether this version knows the kind: a later version, which runs at the same time, may write others. */
export const isKnownKind = (kind: string): boolean => Object.hasOwn(DESCRIBE, kind);

const describe = <Kind extends OutboxKind>(message: OutboxMessage<Kind>): Described => DESCRIBE[message.kind](message);

const DESCRIBE: { readonly [Kind in OutboxKind]: (message: OutboxMessage<Kind>) => Described } = {
  settlement: ({ objectId, context }) => ({
    workflowType: 'settlement',
    workflowId: settlementWorkflowId(objectId),
    args: [{ settlementId: objectId, orgId: context.orgId }],
    summary: `${context.corridor} settlement by ${context.paymentMethod}`,
    details:
      `Settlement \`${objectId}\` of organization \`${context.orgId}\`.\n\n` +
      `Everything about it: \`npm run ops -- show ${objectId}\``,
  }),
  sandbox_collection: ({ objectId, context }) => ({
    workflowType: 'sandboxCollection',
    workflowId: sandboxCollectionWorkflowId(objectId),
    args: [{ settlementId: objectId, orgId: context.orgId }],
    summary: `Simulated provider of settlement ${objectId}`,
  }),
  sandbox_event: ({ objectId, context }) => ({
    workflowType: 'sandboxEvent',
    workflowId: sandboxEventWorkflowId(objectId),
    args: [{ ...context, commandId: objectId }],
    summary: `${context.event} for settlement ${context.settlementId}`,
  }),
  verification: ({ objectId, context }) => ({
    workflowType: 'verification',
    workflowId: verificationWorkflowId(objectId),
    args: [{ verificationId: objectId, orgId: context.orgId }],
    summary: `${context.verificationType} verification by ${context.provider}`,
    details:
      `Verification \`${objectId}\` of organization \`${context.orgId}\`: ` +
      'open until it is decided, at most 30 days.\n\n' +
      `Everything about it: \`npm run ops -- show ${objectId}\``,
  }),
  sandbox_verification: ({ objectId, context }) => ({
    workflowType: 'sandboxVerification',
    workflowId: sandboxVerificationWorkflowId(objectId),
    args: [{ verificationId: objectId, orgId: context.orgId }],
    summary: `Simulated identity provider of verification ${objectId}`,
  }),
  webhook_subscription: ({ objectId, context }) => ({
    workflowType: 'webhookSubscription',
    workflowId: webhookSubscriptionWorkflowId(objectId),
    args: [{ webhookId: objectId, orgId: context.orgId }],
    summary: `Retries to webhook ${objectId}`,
    details:
      `Subscription \`${objectId}\` of organization \`${context.orgId}\`.\n\n` +
      'It runs while a retry waits. Each attempt is a row in PostgreSQL.\n\n' +
      `Everything about it: \`npm run ops -- show ${objectId}\``,
    taskQueue: DELIVERY_TASK_QUEUE,
  }),
  webhook_lane: ({ objectId }) => ({
    workflowType: 'webhookLane',
    workflowId: laneWorkflowId(objectId),
    args: [{ lane: Number(objectId) }],
    summary: `Deliveries, lane ${objectId}`,
    details: 'It always runs. Its one activity sends events to a share of all subscriptions.',
    taskQueue: DELIVERY_TASK_QUEUE,
  }),
  otp: ({ objectId }) => ({
    workflowType: 'otp',
    workflowId: otpWorkflowId(objectId),
    args: [{ challengeId: objectId }],
    summary: 'One-time code',
  }),
};

function searchAttributesOf(message: OutboxMessage) {
  const { context } = message;
  const values = [
    { key: SEARCH_ATTRIBUTES.OrgId, value: context.orgId },
    { key: SEARCH_ATTRIBUTES.Corridor, value: 'corridor' in context ? context.corridor : undefined },
    { key: SEARCH_ATTRIBUTES.PaymentMethod, value: 'paymentMethod' in context ? context.paymentMethod : undefined },
    { key: SEARCH_ATTRIBUTES.SettlementId, value: settlementOfMessage(message) },
  ];
  return values.flatMap(({ key, value }) => (value === undefined ? [] : [{ key, value }]));
}
