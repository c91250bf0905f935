/** Deliveries of events to a subscription, with their attempts (contract §11). */
import { z } from 'zod';
import { EVENT_TYPES } from '../../domain/event.ts';
import {
  ATTEMPT_ERRORS,
  ATTEMPT_OUTCOMES,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  REPLAY_MAX,
} from '../../domain/webhook.ts';
import { EXAMPLE_ID, id, list, moment, nullAsAbsent, objectId, PageQuery, timestamp } from './common.ts';

const EXAMPLE_SINCE = '2026-11-21T08:00:00.000Z';

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

const REPLAYED = ['skipped', 'exhausted', 'canceled', 'succeeded'] as const satisfies readonly DeliveryStatus[];
export const REPLAYED_BY_DEFAULT = ['skipped', 'exhausted'] as const satisfies readonly DeliveryStatus[];

export const ReplayWebhookRequest = z
  .strictObject({
    since: moment().meta({ description: 'Deliveries that were created then or later.', example: EXAMPLE_SINCE }),
    until: nullAsAbsent(moment()).meta({ description: 'Deliveries that were created before then.', example: null }),
    statuses: nullAsAbsent(list(1, REPLAYED.length, z.enum(REPLAYED))).meta({
      description: 'By default `skipped` and `exhausted`.',
      example: ['skipped', 'exhausted'],
    }),
    event_types: nullAsAbsent(list(1, EVENT_TYPES.length, z.enum(EVENT_TYPES))).meta({
      description: 'By default all.',
      example: ['settlement.settled'],
    }),
  })
  .meta({ id: 'ReplayWebhookRequest' });

export const ReplayWebhookResponse = z
  .object({
    replay_id: objectId(),
    deliveries: z.int().min(0).max(REPLAY_MAX).meta({ description: 'How many deliveries are sent again.', example: 3 }),
  })
  .meta({ id: 'ReplayWebhookResponse' });
