/**
 * Subscriptions and deliveries as the API shows them (contract §11). A delivery shows its status, its last
 * attempts, error classes and times. It never shows the URL, a response body or a secret.
 */
import type { Attempts, Delivery, Replay, Webhook } from '../webhook.ts';

/** The fields of WebhookResponse. */
export function webhookResource(webhook: Webhook) {
  return {
    webhook_id: webhook.webhookId,
    org_id: webhook.orgId,
    url: webhook.url,
    event_types: [...webhook.eventTypes],
    description: webhook.description,
    status: webhook.status,
    disabled_reason: webhook.disabledReason,
    created_at: webhook.createdAt.toISOString(),
    updated_at: webhook.updatedAt.toISOString(),
  };
}

/** The fields of WebhookDeliveryResponse. */
export function deliveryResource(delivery: Delivery, attempts: Attempts) {
  return {
    delivery_id: delivery.deliveryId,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    status: delivery.status,
    attempt_count: attempts.count,
    attempts: attempts.last.map((attempt) => ({
      number: attempt.number,
      at: attempt.at.toISOString(),
      outcome: attempt.outcome,
      response_status: attempt.responseStatus,
      duration_ms: attempt.durationMs,
      error: attempt.error,
    })),
    next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
    created_at: delivery.createdAt.toISOString(),
  };
}

/** The fields of WebhookReplayResponse. */
export function replayResource(replay: Replay) {
  return {
    replay_id: replay.replayId,
    webhook_id: replay.webhookId,
    status: replay.status,
    since: replay.since.toISOString(),
    until: replay.until?.toISOString() ?? null,
    statuses: [...replay.statuses],
    event_types: replay.eventTypes && [...replay.eventTypes],
    sent: replay.sent,
    skipped: replay.skipped,
    reached_at: replay.reachedAt.toISOString(),
    created_at: replay.createdAt.toISOString(),
    finished_at: replay.finishedAt?.toISOString() ?? null,
  };
}
