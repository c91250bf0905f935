/** Deliveries of events to a subscription, with their attempts (contract §11). */
import { z } from 'zod';
import { EVENT_TYPES } from '../../domain/event.ts';
import {
  ATTEMPT_ERRORS,
  ATTEMPT_OUTCOMES,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  REPLAY_MAX,
  SHOWN_ATTEMPTS_MAX,
} from '../../domain/webhook.ts';
import {
  closedEnum,
  createdAt,
  id,
  list,
  nullAsAbsent,
  objectId,
  openEnum,
  timestamp,
  timestampOrNull,
} from './common.ts';
import { EventType, eventType } from './event-type.ts';
import { moment, PageQuery } from './page.ts';

const EXAMPLE_SINCE = '2026-11-21T08:00:00.000Z';

const DeliveryStatusName = openEnum(
  'DeliveryStatus',
  DELIVERY_STATUSES,
  '`pending`: it is sent, or sent again. `exhausted`: every attempt failed. `skipped`: the subscription was disabled. ' +
    '`canceled`: the subscription was deleted.',
);
const AttemptOutcome = openEnum('AttemptOutcome', ATTEMPT_OUTCOMES, '`pending` while the request is under way.');
const AttemptError = openEnum('AttemptError', ATTEMPT_ERRORS, 'Why an attempt failed, as one word.');

const DeliveryAttempt = z
  .object({
    number: z.int().meta({ description: 'Counts the attempts from 1.', example: 1 }),
    at: timestamp('When it was made.'),
    outcome: AttemptOutcome.meta({ description: 'How it ended.' }),
    response_status: z
      .int()
      .nullable()
      .meta({ description: 'The HTTP status of the answer; null without an answer.', example: 200 }),
    duration_ms: z.int().nullable().meta({ description: 'How long it took; null while it is under way.', example: 84 }),
    error: AttemptError.nullable().meta({
      description: 'Why the attempt failed, as one word. Nothing of the response is stored.',
    }),
  })
  .meta({ id: 'DeliveryAttempt', description: 'An attempt to deliver an event.' });

export const WebhookDeliveryResponse = z
  .object({
    delivery_id: objectId('The id of the delivery.'),
    webhook_id: objectId('The subscription that the event is sent to.'),
    event_id: objectId('The `webhook-id` that the subscriber receives; the same at every attempt.'),
    event_type: eventType(),
    status: DeliveryStatusName.meta({ description: 'How far the delivery is.' }),
    attempt_count: z.int().meta({ description: 'How many attempts there were.', example: 1 }),
    attempts: z
      .array(DeliveryAttempt)
      .meta({ description: `The last ${SHOWN_ATTEMPTS_MAX} attempts, in their order.` }),
    next_attempt_at: timestampOrNull('When the next attempt is made; null if there is none.'),
    created_at: createdAt(),
  })
  .meta({ id: 'WebhookDeliveryResponse' });

export const WebhookDeliveryPath = z.object({ webhook_id: id('The subscription.'), delivery_id: id('The delivery.') });
export const WebhookDeliveryQuery = PageQuery.safeExtend({
  status: DeliveryStatusName.optional().meta({ description: 'Only deliveries with this outcome.' }),
});

const REPLAYED = ['skipped', 'exhausted', 'canceled', 'succeeded'] as const satisfies readonly DeliveryStatus[];
export const REPLAYED_BY_DEFAULT = ['skipped', 'exhausted'] as const satisfies readonly DeliveryStatus[];

const ReplayedStatus = closedEnum('ReplayedStatus', REPLAYED, 'The deliveries that can be sent again.');

export const ReplayWebhookRequest = z
  .strictObject({
    since: moment().meta({ description: 'Deliveries that were created then or later.', example: EXAMPLE_SINCE }),
    until: nullAsAbsent(moment()).meta({ description: 'Deliveries that were created before then.', example: null }),
    statuses: nullAsAbsent(list(1, REPLAYED.length, ReplayedStatus)).meta({
      description: 'Only deliveries with these outcomes; by default `skipped` and `exhausted`.',
      example: ['skipped', 'exhausted'],
    }),
    event_types: nullAsAbsent(list(1, EVENT_TYPES.length, EventType)).meta({
      description: 'Only deliveries of these events; by default all.',
      example: ['settlement.settled'],
    }),
  })
  .meta({ id: 'ReplayWebhookRequest' });

export const WebhookReplayResponse = z
  .object({
    replay_id: objectId('For support: the id of this replay.'),
    deliveries: z.int().min(0).max(REPLAY_MAX).meta({ description: 'How many deliveries are sent again.', example: 3 }),
  })
  .meta({ id: 'WebhookReplayResponse' });
