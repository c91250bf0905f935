/** Webhook subscriptions (contract §11). */
import { z } from 'zod';
import type { WebhookChange } from '../../db/queries/webhook.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { ALL_EVENTS, DESCRIPTION_LENGTH_MAX, DISABLED_REASONS, WEBHOOK_STATUSES } from '../../domain/webhook.ts';
import { TARGET_LENGTH_MAX, targetFault } from '../../domain/webhook-target.ts';
import { id, list, objectId, text, timestamp } from './common.ts';

const EXAMPLE_URL = 'https://hooks.partner.example/settlements';
const EXAMPLE_DESCRIPTION = 'Ledger of the payouts team';
const FILTERS = [ALL_EVENTS, ...EVENT_TYPES] as const;

/** Checks what every environment refuses. The route refuses what only the local sandbox allows. */
const url = () =>
  text(1, TARGET_LENGTH_MAX)
    .superRefine((value, context) => {
      const fault = value.length <= TARGET_LENGTH_MAX ? targetFault(value, { allowLocal: true }) : undefined;
      if (fault) context.addIssue({ code: 'custom', message: fault });
    })
    .meta({
      description:
        'HTTPS, port 443 or from 1024, a public host name, no credentials and no fragment. Checked again at each ' +
        'connection.',
      example: EXAMPLE_URL,
    });

const eventTypes = () =>
  list(1, FILTERS.length, z.enum(FILTERS))
    .overwrite((types) => [...new Set(types)])
    .meta({
      description: '`*` means every type, including future ones.',
      example: ['settlement.settled', 'settlement.failed'],
    });

const description = () => text(1, DESCRIPTION_LENGTH_MAX).meta({ example: EXAMPLE_DESCRIPTION });

export const CreateWebhookRequest = z
  .strictObject({ url: url(), event_types: eventTypes(), description: description().nullish() })
  .meta({ id: 'CreateWebhookRequest' });

export const UpdateWebhookRequest = z
  .strictObject({
    url: url().optional(),
    event_types: eventTypes().optional(),
    description: description().nullish(),
    status: z
      .enum(WEBHOOK_STATUSES)
      .optional()
      .meta({ description: '`disabled` skips pending deliveries. `enabled` forgets earlier failures.' }),
  })
  .meta({
    id: 'UpdateWebhookRequest',
    description: 'A field that is present replaces the old value; `null` clears the description.',
  });

export function webhookChange(body: z.output<typeof UpdateWebhookRequest>): WebhookChange {
  return {
    ...(body.url === undefined ? {} : { url: body.url }),
    ...(body.event_types === undefined ? {} : { eventTypes: body.event_types }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.status === undefined ? {} : { status: body.status }),
  };
}

const webhook = {
  webhook_id: objectId(),
  org_id: objectId(),
  url: z.string().meta({ example: EXAMPLE_URL }),
  event_types: z.array(z.enum(FILTERS)),
  description: z.string().nullable().meta({ example: EXAMPLE_DESCRIPTION }),
  status: z.enum(WEBHOOK_STATUSES),
  disabled_reason: z.enum(DISABLED_REASONS).nullable().meta({
    description: '`requested`: by you. `gone`: the endpoint answered 410. `failing`: only failures for 5 days.',
  }),
  created_at: timestamp(),
  updated_at: timestamp(),
};

const secret = () =>
  z.string().meta({
    description: 'Signs the deliveries. It is shown only once; keep it on a server.',
    example: 'whsec_<base64 of 32 bytes>',
  });

export const WebhookResponse = z.object(webhook).meta({ id: 'WebhookResponse' });
export const WebhookCreatedResponse = z.object({ ...webhook, secret: secret() }).meta({ id: 'WebhookCreatedResponse' });
export const WebhookRotatedResponse = z
  .object({
    ...webhook,
    secret: secret(),
    previous_secret_expires_at: timestamp().meta({ description: 'Until this time the previous secret signs as well.' }),
  })
  .meta({ id: 'WebhookRotatedResponse' });

export const WebhookPath = z.object({ webhook_id: id() });
