/** A partner with subscriptions, which causes events on demand. */
import { z } from 'zod';
import { createClient } from '../../scripts/partner/client.ts';
import { signUp } from '../../scripts/partner/partner.ts';
import { inParallel } from './bench.ts';

export type Subscriber = {
  subscribe(url: string): Promise<void>;
  /** Causes this many events as fast as the API allows. Each event is sent to every subscription. */
  emit(events: number): Promise<void>;
  /** Deletes the subscriptions, so that nothing is delivered after the benchmark. */
  end(): Promise<void>;
};

const REQUESTS_AT_ONCE = 8;
const Webhook = z.object({ webhook_id: z.string() });

export async function createSubscriber(apiUrl: string): Promise<Subscriber> {
  const client = createClient({ baseUrl: () => apiUrl });
  const partner = await signUp(client.call);
  const webhookIds: string[] = [];
  return {
    subscribe: async (url) => {
      const body = { url, event_types: ['recipient.deactivated'] };
      const { json } = await partner.call({ method: 'POST', path: '/v1/webhooks', body });
      webhookIds.push(Webhook.parse(json).webhook_id);
    },
    emit: (events) =>
      inParallel(events, REQUESTS_AT_ONCE, async () => {
        const recipientId = await partner.createRecipient();
        await partner.call({ method: 'DELETE', path: `/v1/recipients/${recipientId}` });
      }),
    end: async () => {
      for (const webhookId of webhookIds) await partner.call({ method: 'DELETE', path: `/v1/webhooks/${webhookId}` });
      await client.close();
    },
  };
}
