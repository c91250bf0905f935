/** Deliveries of events to a subscription, with their attempts (contract §11). */
import { z } from 'zod';
import { EVENT_TYPES } from '../../domain/event.ts';
import { ATTEMPT_ERRORS, ATTEMPT_OUTCOMES, DELIVERY_STATUSES } from '../../domain/webhook.ts';
import { EXAMPLE_ID, id, objectId, PageQuery, timestamp } from './common.ts';

export const WebhookDeliveryResponse = z
  .object({
    delivery_id: objectId(),
    webhook_id: objectId(),
    event_id: z.string().meta({
      description: 'The `webhook-id` that the subscriber receives; the same at every attempt.',
      example: EXAMPLE_ID,
    }),
    event_type: z.enum(EVENT_TYPES),
    status: z.enum(DELIVERY_STATUSES),
    attempts: z.array(
      z.object({
        number: z.int(),
        at: timestamp(),
        outcome: z.enum(ATTEMPT_OUTCOMES),
        response_status: z.int().nullable(),
        duration_ms: z.int().nullable(),
        error: z
          .enum(ATTEMPT_ERRORS)
          .nullable()
          .meta({ description: 'Why the attempt failed, as one word. Nothing of the response is stored.' }),
      }),
    ),
    next_attempt_at: timestamp().nullable(),
    created_at: timestamp(),
  })
  .meta({ id: 'WebhookDeliveryResponse' });

export const WebhookDeliveryPath = z.object({ webhook_id: id(), delivery_id: id() });
export const WebhookDeliveryQuery = PageQuery.safeExtend({ status: z.enum(DELIVERY_STATUSES).optional() });
