/** A partner with subscriptions. */
import { signUp } from '../../scripts/sandbox/partner.ts';

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

export async function createSubscriber(apiUrl: string): Promise<Subscriber> {
  const { orgId, client } = await signUp({ baseUrl: apiUrl });
  const { webhooks } = client;
  const webhookIds: string[] = [];
  return {
    orgId,
    subscribe: async (url) => {
      const { webhook_id } = await webhooks.create({ url, event_types: ['recipient.deactivated'] });
      webhookIds.push(webhook_id);
      return webhook_id;
    },
    setStatus: async (webhookId, status) => void (await webhooks.update(webhookId, { status })),
    nudge: async () => void (await webhooks.update(webhookIds[0] ?? '', { description: 'measured' })),
    end: async () => {
      for (const webhookId of webhookIds) await webhooks.delete(webhookId);
    },
  };
}
