/** A partner with subscriptions. */
import { z } from 'zod';
import { createClient } from '../../scripts/partner/client.ts';
import { signUp } from '../../scripts/partner/partner.ts';

export type Subscriber = {
  readonly orgId: string;
  /** @returns the subscription's id */
  subscribe(url: string): Promise<string>;
  setStatus(webhookId: string, status: 'enabled' | 'disabled'): Promise<void>;
  /** Changes something that starts no delivery, so that the API's dispatcher looks for outbox rows. */
  nudge(): Promise<void>;
  /** Deletes the subscriptions, so that nothing is delivered after the benchmark. */
  end(): Promise<void>;
};

const Webhook = z.object({ webhook_id: z.string() });

export async function createSubscriber(apiUrl: string): Promise<Subscriber> {
  const client = createClient({ baseUrl: () => apiUrl });
  const partner = await signUp(client.call);
  const webhookIds: string[] = [];
  const change = async (webhookId: string, body: object): Promise<void> =>
    void (await partner.call({ method: 'PATCH', path: `/v1/webhooks/${webhookId}`, body, expectStatus: 200 }));
  return {
    orgId: partner.orgId,
    subscribe: async (url) => {
      const body = { url, event_types: ['recipient.deactivated'] };
      const { json } = await partner.call({ method: 'POST', path: '/v1/webhooks', body, expectStatus: 201 });
      const { webhook_id } = Webhook.parse(json);
      webhookIds.push(webhook_id);
      return webhook_id;
    },
    setStatus: (webhookId, status) => change(webhookId, { status }),
    nudge: () => change(webhookIds[0] ?? '', { description: 'measured' }),
    end: async () => {
      for (const webhookId of webhookIds)
        await partner.call({ method: 'DELETE', path: `/v1/webhooks/${webhookId}`, expectStatus: 204 });
      await client.close();
    },
  };
}
