/** The subscribers of a run: some are healthy, others fail at first, always fail, hang or have gone. */
import type { ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { startHttpServer } from '../support/http-server.ts';
import type { HttpClient, Json } from './client.ts';
import { authorize, type Tenant } from './tenant.ts';

export const BEHAVIORS = ['healthy', 'fails_at_first', 'always_fails', 'hangs', 'gone'] as const;
export type Behavior = (typeof BEHAVIORS)[number];

/** Whether every event arrives in the end. */
export const receivesAll = (behavior: Behavior): boolean => behavior === 'healthy' || behavior === 'fails_at_first';

/** Whether a subscriber that fails at first fails at this event. The service retries after five seconds. */
export const failsOnce = (eventId: string): boolean => eventId.endsWith('0');

export type Subscriber = {
  readonly tenant: Tenant;
  readonly behavior: Behavior;
  readonly webhookId: string;
  /** Every event that was accepted, by id. */
  readonly events: ReadonlyMap<string, Json>;
  /** Requests whose signature is invalid. */
  readonly invalid: number;
};

export type Subscribers = {
  /** @throws Error when the service refuses the subscription */
  subscribe(http: HttpClient, tenant: Tenant, behavior: Behavior): Promise<Subscriber>;
  close(): Promise<void>;
};

type Known = { -readonly [Key in keyof Subscriber]: Subscriber[Key] } & {
  secret: string;
  readonly events: Map<string, Json>;
  /** The ids of the events that were sent at least once. */
  readonly seen: Set<string>;
};

/** One server for all subscribers. Each has a path of its own. */
export async function startSubscribers(): Promise<Subscribers> {
  const known = new Map<string, Known>();
  const server = await startHttpServer((response, { path, headers, body }) => {
    const subscriber = known.get(path);
    if (!subscriber) return response.writeHead(404).end();
    const event = verify(subscriber.secret, body, headers as Record<string, string>);
    if (event) return answer(response, subscriber, event);
    subscriber.invalid += 1;
    return response.writeHead(400).end();
  });
  return {
    async subscribe(http, tenant, behavior) {
      const path = `/${crypto.randomUUID()}`;
      const created = await http.untilAnswered({
        method: 'POST',
        path: '/v1/webhooks',
        headers: authorize(tenant, { 'idempotency-key': crypto.randomUUID() }),
        body: { url: `${server.url}${path}`, event_types: ['*'] },
      });
      if (created.status !== 201) throw new Error(`the subscription was answered ${created.status}: ${created.text}`);
      const { webhook_id: webhookId, secret } = created.body;
      const subscriber: Known = {
        tenant,
        behavior,
        webhookId,
        secret,
        events: new Map(),
        seen: new Set(),
        invalid: 0,
      };
      known.set(path, subscriber);
      return subscriber;
    },
    close: server.close,
  };
}

function verify(secret: string, body: Buffer, headers: Record<string, string>): Json {
  try {
    return new Webhook(secret).verify(body.toString(), headers);
  } catch {
    return undefined;
  }
}

function answer(response: ServerResponse, { behavior, events, seen }: Known, event: Json): unknown {
  const firstTime = !seen.has(event.id);
  seen.add(event.id);
  if (behavior === 'hangs') return undefined;
  if (behavior === 'gone') return response.writeHead(410).end();
  if (behavior === 'always_fails') return response.writeHead(500).end();
  if (behavior === 'fails_at_first' && firstTime && failsOnce(event.id)) return response.writeHead(503).end();
  events.set(event.id, event);
  return response.writeHead(200).end();
}
