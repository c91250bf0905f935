/** A partner for benchmarks: an organization of its own, its subscriptions, and events on demand. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { inParallel } from './bench.ts';

export type Partner = {
  subscribe(url: string): Promise<void>;
  /** Causes so many events, each one told to every subscription, as fast as the API takes them. */
  emit(events: number): Promise<void>;
  /** Deletes the subscriptions, so that nothing goes on after the run. */
  end(): Promise<void>;
};

const REQUESTS_AT_ONCE = 8;
const RATE_LIMITED = 429;
const Organization = z.object({ api_key: z.string() });
const Webhook = z.object({ webhook_id: z.string() });
const Recipient = z.object({ recipient_id: z.string() });

const RECIPIENT = {
  kind: 'contractor',
  entity_type: 'individual',
  name: 'Marcia Brown',
  country: 'JM',
  bank_details: { bank_name: 'National Commercial Bank', account_number: '123456789', currency: 'JMD' },
};

export async function createPartner(url: string): Promise<Partner> {
  const call = async (method: string, path: string, apiKey: string | undefined, body?: object): Promise<unknown> => {
    for (;;) {
      const headers = {
        ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      };
      const response = await fetch(`${url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.ok) return text === '' ? undefined : JSON.parse(text);
      if (response.status !== RATE_LIMITED) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
      await delay(Number(response.headers.get('retry-after') ?? 1) * 1_000);
    }
  };
  const { api_key: apiKey } = Organization.parse(
    await call('POST', '/v1/orgs', undefined, { name: 'Bench', country: 'JM', contact_email: 'bench@acme.example' }),
  );
  const webhookIds: string[] = [];
  return {
    subscribe: async (target) => {
      const body = { url: target, event_types: ['recipient.deactivated'] };
      webhookIds.push(Webhook.parse(await call('POST', '/v1/webhooks', apiKey, body)).webhook_id);
    },
    emit: (events) =>
      inParallel(events, REQUESTS_AT_ONCE, async () => {
        const { recipient_id: recipientId } = Recipient.parse(await call('POST', '/v1/recipients', apiKey, RECIPIENT));
        await call('DELETE', `/v1/recipients/${recipientId}`, apiKey);
      }),
    end: async () => {
      for (const webhookId of webhookIds) await call('DELETE', `/v1/webhooks/${webhookId}`, apiKey);
    },
  };
}
