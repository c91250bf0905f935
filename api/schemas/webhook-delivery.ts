/** Deliveries of events to a subscription, with their attempts (contract §11). */
import { z } from 'zod';
import { ATTEMPT_ERRORS, ATTEMPT_OUTCOMES, DELIVERY_STATUSES, SHOWN_ATTEMPTS_MAX } from '../../domain/webhook.ts';
import { createdAt, id, objectId, openEnum, timestamp, timestampOrNull } from './common.ts';
import { eventType } from './event-type.ts';
import { PageQuery } from './page.ts';

export const DeliveryStatusName = openEnum(
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
