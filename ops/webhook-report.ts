/** `show` of a subscription and of a delivery. */
import {
  countDeliveriesTo,
  findDeliveryObject,
  listAttemptsOf,
  listDeliveriesTo,
} from '../db/queries/operator/delivery.ts';
import { listAuditEntries, listOutboxRows } from '../db/queries/operator/object.ts';
import { listDueSubscriptions } from '../db/queries/operator/pending-subscription.ts';
import { listLateDeliveries } from '../db/queries/operator/waiting.ts';
import { findWebhookObject } from '../db/queries/operator/webhook.ts';
import { findRunningReplay } from '../db/queries/webhook-replay.ts';
import { maskUrl } from '../domain/mask.ts';
import { deliveryAdvice, queuedAdvice, subscriptionAdvice } from '../domain/operator-advice.ts';
import { COUNTED_MAX } from '../domain/page.ts';
import type { Replay } from '../domain/webhook.ts';
import { webhookSubscriptionWorkflowId } from '../domain/workflow-id.ts';
import { DELIVERY_TASK_QUEUE } from '../workflows/contract.ts';
import type { OpsDeps } from './command.ts';
import type { Report } from './report.ts';
import { auditRow, deliveryRow, outboxRow } from './report-row.ts';
import { isLate, obstacleAdvice, reportRun } from './run-report.ts';

export async function reportSubscription(deps: OpsDeps, webhookId: string): Promise<Report | undefined> {
  const { db } = deps;
  const webhook = await findWebhookObject(db, webhookId);
  if (!webhook) return undefined;
  const { status, disabledReason, failingSince, deletedAt } = webhook;
  const outbox = await listOutboxRows(db, webhookId);
  const { counts, isPartial } = await countDeliveriesTo(db, webhookId);
  const run = await reportRun(deps, webhookSubscriptionWorkflowId(webhookId), DELIVERY_TASK_QUEUE);
  const replay = await findRunningReplay(db, webhookId);
  // What its lane sends needs no run of its own.
  const due = await listDueSubscriptions(db, { after: '', limit: 1, among: [webhookId] }, '');
  return {
    kind: 'subscription',
    id: webhookId,
    facts: {
      status: deletedAt === null ? status : 'deleted',
      disabled_reason: disabledReason,
      failing_since: failingSince,
      deleted_at: deletedAt,
      organization: webhook.orgId,
      url: maskUrl(webhook.url),
      event_types: webhook.eventTypes.join(' '),
      created_at: webhook.createdAt,
      changed_at: webhook.updatedAt,
      ...run.facts,
    },
    lists: {
      pending_steps: run.activities,
      running_replay: replay ? [replayRow(replay)] : [],
      counts: counts.map(({ status: of, count }) => ({
        status: of,
        deliveries: count,
        ...(isPartial && { of_the_latest: COUNTED_MAX }),
      })),
      latest_deliveries: (await listDeliveriesTo(db, webhookId)).map(deliveryRow),
      outbox: outbox.map(outboxRow),
      audit: (await listAuditEntries(db, webhookId)).map(auditRow),
    },
    next: [
      obstacleAdvice(run, outbox, { id: webhookId, needsRun: due.length > 0 }) ??
        subscriptionAdvice({
          webhookId,
          status,
          disabledReason,
          isDeleted: deletedAt !== null,
          isFailing: failingSince !== null,
        }),
    ],
  };
}

const replayRow = ({ replayId, since, until, statuses, eventTypes, sent, skipped, reachedAt, createdAt }: Replay) => ({
  replay: replayId,
  of: statuses.join(' '),
  event_types: eventTypes?.join(' ') ?? null,
  since,
  until,
  sent,
  skipped,
  reached: reachedAt,
  begun: createdAt,
});

export async function reportDelivery(deps: OpsDeps, deliveryId: string): Promise<Report | undefined> {
  const { db, now } = deps;
  const delivery = await findDeliveryObject(db, deliveryId);
  if (!delivery) return undefined;
  const { status, webhookId, nextAttemptAt, failingSince } = delivery;
  const attempts = await listAttemptsOf(db, deliveryId);
  const outbox = await listOutboxRows(db, webhookId);
  const run = await reportRun(deps, webhookSubscriptionWorkflowId(webhookId), DELIVERY_TASK_QUEUE);
  const stuck = outbox.find(isLate);
  const late = await listLateDeliveries(db, now(), { limit: 1, only: deliveryId });
  return {
    kind: 'delivery',
    id: deliveryId,
    facts: {
      status,
      since: attempts.at(-1)?.at ?? delivery.createdAt,
      next_attempt_at: nextAttemptAt,
      organization: delivery.orgId,
      webhook: webhookId,
      url: maskUrl(delivery.url),
      event: delivery.eventId,
      event_type: delivery.eventType,
      about: `${delivery.objectType} ${delivery.objectId}`,
      event_at: delivery.eventAt,
      created_at: delivery.createdAt,
      request_id: delivery.requestId,
      // Of its subscription: one run delivers to it whatever is pending.
      ...run.facts,
    },
    lists: {
      attempts: attempts.map(({ number, at, outcome, responseStatus, durationMs, error }) => ({
        attempt: number,
        at,
        outcome,
        response_status: responseStatus,
        error,
        milliseconds: durationMs,
      })),
      pending_steps: run.activities,
      outbox: outbox.map(outboxRow),
      audit: (await listAuditEntries(db, deliveryId)).map(auditRow),
    },
    next: [
      stuck
        ? queuedAdvice(stuck.lastError)
        : deliveryAdvice({ deliveryId, webhookId, status, isLate: late.length > 0, isFailing: failingSince !== null }),
    ],
  };
}
