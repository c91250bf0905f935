/** Subscriptions to events, their deliveries, and the events themselves (contract §11). */

import type { KeyOptions } from './intent.ts';
import type { BodyOf, QueryOf } from './operation.ts';
import { createBelow, creationAt, listAt, type Request } from './request.ts';
import type { CallOptions, Send } from './transport.ts';

const at = (webhookId: string) => ({ webhook_id: webhookId });

export const subscriptionGroups = (send: Send, request: Request) => ({
  /** Subscriptions. A delivery that you receive is verified by `webhooks.verify` of the module, without a client. */
  webhooks: {
    ...creationAt(send, '/v1/webhooks'),
    get: async (webhookId: string, options: CallOptions = {}) =>
      (await request('GET', '/v1/webhooks/{webhook_id}', { path: at(webhookId), ...options })).data,
    list: (query?: QueryOf<'/v1/webhooks'>, options?: CallOptions) => listAt(send, '/v1/webhooks', query, options),
    update: async (
      webhookId: string,
      fields: BodyOf<'PATCH', '/v1/webhooks/{webhook_id}'>,
      options: CallOptions = {},
    ) => (await request('PATCH', '/v1/webhooks/{webhook_id}', { path: at(webhookId), body: fields, ...options })).data,
    delete: async (webhookId: string, options: CallOptions = {}): Promise<void> => {
      await request('DELETE', '/v1/webhooks/{webhook_id}', { path: at(webhookId), ...options });
    },
    /**
     * Each earlier secret signs for 24 hours from its own rotation. For as long the same idempotency key shows this one
     * again.
     */
    rotateSecret: (webhookId: string, options?: CallOptions & KeyOptions) =>
      createBelow(send, '/v1/webhooks/{webhook_id}/rotate-secret', { values: at(webhookId) }, options),
    /** Sends `webhook.ping`, or an example of `event_type`, to this subscription alone. The event has `test: true`. */
    sendTestEvent: async (
      webhookId: string,
      fields?: BodyOf<'POST', '/v1/webhooks/{webhook_id}/test'>,
      options: CallOptions = {},
    ) =>
      (
        await request('POST', '/v1/webhooks/{webhook_id}/test', {
          path: at(webhookId),
          ...(fields && { body: fields }),
          ...options,
        })
      ).data,
    deliveries: (webhookId: string, query?: QueryOf<'/v1/webhooks/{webhook_id}/deliveries'>, options?: CallOptions) =>
      listAt(send, '/v1/webhooks/{webhook_id}/deliveries', query, { values: at(webhookId), ...options }),
    redeliver: (webhookId: string, deliveryId: string, options?: CallOptions & KeyOptions) =>
      createBelow(
        send,
        '/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver',
        { values: { ...at(webhookId), delivery_id: deliveryId } },
        options,
      ),
    /** Starts to send again what matches, oldest first. `getReplay` shows how far it is. */
    replay: (
      webhookId: string,
      fields: BodyOf<'POST', '/v1/webhooks/{webhook_id}/replay'>,
      options?: CallOptions & KeyOptions,
    ) => createBelow(send, '/v1/webhooks/{webhook_id}/replay', { values: at(webhookId), fields }, options),
    getReplay: async (webhookId: string, replayId: string, options: CallOptions = {}) =>
      (
        await request('GET', '/v1/webhooks/{webhook_id}/replays/{replay_id}', {
          path: { ...at(webhookId), replay_id: replayId },
          ...options,
        })
      ).data,
  },
  /** Every event of the organization, subscribed or not, for at least 90 days. */
  events: {
    get: async (eventId: string, options: CallOptions = {}) =>
      (await request('GET', '/v1/events/{event_id}', { path: { event_id: eventId }, ...options })).data,
    list: (filter?: QueryOf<'/v1/events'>, options?: CallOptions) => listAt(send, '/v1/events', filter, options),
  },
});
