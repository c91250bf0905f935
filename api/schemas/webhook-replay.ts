/** Replays of a subscription's deliveries (contract §11). */
import { z } from 'zod';
import { EVENT_TYPES } from '../../domain/event.ts';
import { DELIVERY_STATUSES, type DeliveryStatus, REDELIVERIES_MAX, REPLAY_STATUSES } from '../../domain/webhook.ts';
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
import { EventType } from './event-type.ts';
import { moment } from './page.ts';
import { rule } from './rule.ts';
import { DeliveryStatusName } from './webhook-delivery.ts';

const EXAMPLE_SINCE = '2026-11-21T08:00:00.000Z';

export const REPLAYED_BY_DEFAULT = ['pending', 'skipped', 'exhausted'] as const satisfies readonly DeliveryStatus[];

const ReplayedStatus = closedEnum('ReplayedStatus', DELIVERY_STATUSES, 'The deliveries that are sent again.');

const period = {
  since: moment().meta({ description: 'Deliveries that were created then or later.', example: EXAMPLE_SINCE }),
  until: nullAsAbsent(moment()).meta({
    description: 'Deliveries that were created before then; by default all that exist when the replay begins.',
    example: null,
  }),
};

export const ReplayWebhookRequest = z
  .strictObject({
    ...period,
    statuses: nullAsAbsent(list(1, DELIVERY_STATUSES.length, ReplayedStatus)).meta({
      description:
        'Only deliveries with these outcomes; by default `pending`, `skipped` and `exhausted`. A `pending` delivery ' +
        'makes its next attempt now.',
      example: REPLAYED_BY_DEFAULT,
    }),
    event_types: nullAsAbsent(list(1, EVENT_TYPES.length, EventType)).meta({
      description: 'Only deliveries of these events; by default all.',
      example: ['settlement.settled'],
    }),
  })
  .check(
    rule(z.object(period), ({ since, until }, context) => {
      if (until && until < since)
        context.addIssue({ code: 'custom', path: ['until'], message: 'must not be before since' });
    }),
  )
  .meta({ id: 'ReplayWebhookRequest' });

export const StartedReplayResponse = z
  .object({ replay_id: objectId('The id of the replay: reading it shows how far it is.') })
  .meta({ id: 'StartedReplayResponse' });

const ReplayStatusName = openEnum(
  'ReplayStatus',
  REPLAY_STATUSES,
  '`completed`: all that matched was sent again or left out. `canceled`: the subscription was disabled or ' +
    'deleted.',
);

export const WebhookReplayResponse = z
  .object({
    replay_id: objectId('The id of the replay.'),
    webhook_id: objectId('The subscription.'),
    status: ReplayStatusName.meta({ description: 'How far the replay is.' }),
    since: timestamp('Deliveries that were created then or later.'),
    until: timestampOrNull('Deliveries that were created before then; null for all that existed when it began.'),
    statuses: z.array(DeliveryStatusName).meta({ description: 'Deliveries with these outcomes.' }),
    event_types: z.array(EventType).nullable().meta({ description: 'Deliveries of these events; null for all.' }),
    sent: z.int().meta({ description: 'How many deliveries were sent again so far.', example: 500 }),
    skipped: z.int().meta({
      description: `How many were left out, because they were redelivered ${REDELIVERIES_MAX} times within 24 hours.`,
      example: 0,
    }),
    reached_at: timestamp('Deliveries that were created before then are done.'),
    created_at: createdAt(),
    finished_at: timestampOrNull('When it ended; null while it runs.'),
  })
  .meta({ id: 'WebhookReplayResponse' });

export const WebhookReplayPath = z.object({ webhook_id: id('The subscription.'), replay_id: id('The replay.') });
