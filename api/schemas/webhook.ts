/** Webhook subscriptions (contract §11). */
import { z } from 'zod';
import type { WebhookChange } from '../../db/queries/webhook.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { ALL_EVENTS, DESCRIPTION_LENGTH_MAX, DISABLED_REASONS, WEBHOOK_STATUSES } from '../../domain/webhook.ts';
import { TARGET_LENGTH_MAX, type TargetRules, targetFault } from '../../domain/webhook-target.ts';
import {
  closedEnum,
  createdAt,
  id,
  list,
  nullAsAbsent,
  objectId,
  openEnum,
  outputText,
  outputTextOrNull,
  text,
  timestamp,
  updatedAt,
} from './common.ts';
import { EventType } from './event-type.ts';

const EXAMPLE_URL = 'https://hooks.partner.example/settlements';
const EXAMPLE_DESCRIPTION = 'Ledger of the payouts team';
const FILTERS = [ALL_EVENTS, ...EVENT_TYPES] as const;

const EventTypeFilter = openEnum('EventTypeFilter', FILTERS, 'A type of event, or `*` for every type.');
const WebhookStatus = closedEnum('WebhookStatus', WEBHOOK_STATUSES, '`disabled`: events are recorded and not sent.');
const DisabledReason = openEnum(
  'WebhookDisabledReason',
  DISABLED_REASONS,
  '`requested`: by you. `gone`: the endpoint answered 410. `failing`: only failures for 5 days. ' +
    '`operator`: by the operator of the service, who alone enables it again.',
);

const webhookUrl = (rules: TargetRules) =>
  text(1, TARGET_LENGTH_MAX)
    .superRefine((value, context) => {
      const fault = targetFault(value, rules);
      if (fault) context.addIssue({ code: 'custom', message: fault });
    })
    .meta({
      description:
        'HTTPS, port 443 or from 1024, a public host name, no credentials and no fragment. Checked again at each ' +
        'connection.',
      format: 'uri',
      pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^\\s@#/?]+([/?][^\\s#]*)?$',
      example: EXAMPLE_URL,
    });

const eventTypes = () =>
  list(1, FILTERS.length, EventTypeFilter)
    .overwrite((types) => [...new Set(types)])
    .meta({
      description: 'The types that are sent. `*` means every type, including future ones.',
      example: ['settlement.settled', 'settlement.failed'],
    });

const OWN_LISTS = 'For your own lists: what receives the events.';
const description = () =>
  text(1, DESCRIPTION_LENGTH_MAX).nullish().meta({ description: OWN_LISTS, example: EXAMPLE_DESCRIPTION });

/** No environment allows more than the local sandbox. */
const LOCAL_RULES: TargetRules = { allowLocal: true };

export const CreateWebhookRequest = z
  .strictObject({ url: webhookUrl(LOCAL_RULES), event_types: eventTypes(), description: description() })
  .meta({ id: 'CreateWebhookRequest' });

export const UpdateWebhookRequest = z
  .strictObject({
    url: webhookUrl(LOCAL_RULES).optional(),
    event_types: eventTypes().optional(),
    description: description(),
    status: WebhookStatus.optional().meta({
      description:
        'Disabling skips pending deliveries; enabling forgets earlier failures. The status that it has does neither.',
    }),
  })
  .meta({
    id: 'UpdateWebhookRequest',
    description: 'A field that is present replaces the old value; `null` clears the description.',
  });

export const createWebhookRules = (rules: TargetRules) => CreateWebhookRequest.extend({ url: webhookUrl(rules) });
export const updateWebhookRules = (rules: TargetRules) =>
  UpdateWebhookRequest.extend({ url: webhookUrl(rules).optional() });

export function webhookChange(body: z.output<typeof UpdateWebhookRequest>): WebhookChange {
  return {
    ...(body.url === undefined ? {} : { url: body.url }),
    ...(body.event_types === undefined ? {} : { eventTypes: body.event_types }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.status === undefined ? {} : { status: body.status }),
  };
}

/** Empty for `webhook.ping`. */
export const TestWebhookRequest = nullAsAbsent(
  z
    .strictObject({
      event_type: nullAsAbsent(EventType).meta({
        description: 'An example of this type is sent. By default `webhook.ping`, which shows the subscription.',
        example: 'settlement.settled',
      }),
    })
    .meta({ id: 'TestWebhookRequest' }),
);

const webhook = {
  webhook_id: objectId('The id of the subscription.'),
  org_id: objectId('The organization that the subscription belongs to.'),
  url: outputText('Where the events are sent.', EXAMPLE_URL),
  event_types: z.array(EventTypeFilter).meta({ description: 'The types that are sent; `*` for every type.' }),
  description: outputTextOrNull(OWN_LISTS, EXAMPLE_DESCRIPTION),
  status: WebhookStatus.meta({ description: 'Whether events are sent.' }),
  disabled_reason: DisabledReason.nullable().meta({ description: 'Why it is disabled; null if it is not.' }),
  created_at: createdAt(),
  updated_at: updatedAt(),
};

const secret = () =>
  z.string().meta({
    description:
      'Signs the deliveries. Only the answer that made it shows it, and its replay by the same `Idempotency-Key` for 24 hours. ' +
      'Keep it on a server.',
    example: 'whsec_<base64 of 32 bytes>',
  });

export const WebhookResponse = z.object(webhook).meta({ id: 'WebhookResponse' });
export const WebhookCreatedResponse = z.object({ ...webhook, secret: secret() }).meta({ id: 'WebhookCreatedResponse' });
export const WebhookRotatedResponse = z
  .object({
    ...webhook,
    secret: secret(),
    previous_secret_expires_at: timestamp('Until this time the previous secret signs as well.'),
  })
  .meta({ id: 'WebhookRotatedResponse' });

export const WebhookPath = z.object({ webhook_id: id('The subscription.') });
