/** The section `webhooks` of the OpenAPI document (contract §11): what a subscription receives, by type. */
import type { OpenAPIV3_1 } from 'openapi-types';
import { EVENT_TYPES, type EventType } from '../../domain/event.ts';
import { EXAMPLE_ID } from '../schemas/common.ts';
import { EVENTS, eventSchemaName } from '../schemas/event.ts';

const reference = (kind: string, name: string): OpenAPIV3_1.ReferenceObject => ({
  $ref: `#/components/${kind}/${name}`,
});

export const WEBHOOK_PARAMETERS: Record<string, OpenAPIV3_1.ParameterObject> = {
  WebhookId: {
    in: 'header',
    name: 'webhook-id',
    required: true,
    description: 'The id of the event; the same at every attempt.',
    schema: { type: 'string', example: EXAMPLE_ID },
  },
  WebhookTimestamp: {
    in: 'header',
    name: 'webhook-timestamp',
    required: true,
    description: 'When this attempt was made, in seconds since 1970.',
    schema: { type: 'string', example: '1795248000' },
  },
  WebhookSignature: {
    in: 'header',
    name: 'webhook-signature',
    required: true,
    description:
      'Standard Webhooks: `v1,<base64 HMAC-SHA256 of "<webhook-id>.<webhook-timestamp>.<body>">`, one for each secret, ' +
      'separated by spaces.',
    schema: { type: 'string', example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' },
  },
};

export const WEBHOOK_RESPONSES: Record<string, OpenAPIV3_1.ResponseObject> = {
  EventReceived: {
    description:
      'Any 2xx within 15 seconds: the event is delivered. 410 disables the subscription. Every other answer is followed ' +
      'by retries.',
  },
};

const webhookOf = (type: EventType): OpenAPIV3_1.PathItemObject => ({
  post: {
    operationId: `on${eventSchemaName(type)}`,
    summary: EVENTS[type].what,
    tags: ['Webhooks'],
    // The signature is a parameter. The receiver checks it; the service has no credential there.
    security: [],
    parameters: Object.keys(WEBHOOK_PARAMETERS).map((name) => reference('parameters', name)),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: reference('schemas', eventSchemaName(type)) } },
    },
    responses: { '2XX': reference('responses', 'EventReceived') },
  },
});

export const webhooks: Record<string, OpenAPIV3_1.PathItemObject> = Object.fromEntries(
  EVENT_TYPES.map((type) => [type, webhookOf(type)]),
);
