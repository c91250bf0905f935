/**
 * Subscribers of the run: one that answers well, one that fails at first, one that always fails, hangs, or has gone.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { HttpClient, Json } from './client.ts';
import type { Tenant } from './oracle.ts';

export const MANNERS = ['well', 'fails_at_first', 'always_fails', 'hangs', 'gone'] as const;
export type Manner = (typeof MANNERS)[number];

export type Subscriber = {
  readonly tenant: Tenant;
  readonly manner: Manner;
  readonly webhookId: string;
  /** Every event id that came with a valid signature, with its event. */
  readonly events: ReadonlyMap<string, Json>;
  /** Requests whose signature did not verify. */
  readonly invalid: number;
};

export type Subscribers = {
  subscribe(http: HttpClient, tenant: Tenant, manner: Manner): Promise<Subscriber>;
  close(): Promise<void>;
};

type Mutable = { -readonly [Key in keyof Subscriber]: Subscriber[Key] } & { secret: string; events: Map<string, Json> };

/** One server for all subscribers; each has a path of its own. */
export async function startSubscribers(): Promise<Subscribers> {
  const known = new Map<string, Mutable>();
  const seen = new Set<string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const subscriber = known.get(request.url ?? '');
      if (!subscriber) return response.writeHead(404).end();
      const event = verify(subscriber.secret, Buffer.concat(chunks), request.headers as Record<string, string>);
      if (!event) subscriber.invalid += 1;
      return answer(response, subscriber, event, seen);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    async subscribe(http, tenant, manner) {
      const path = `/${crypto.randomUUID()}`;
      const subscriber: Mutable = { tenant, manner, webhookId: '', events: new Map(), invalid: 0, secret: '' };
      known.set(path, subscriber);
      const created = await http.untilAnswered({
        method: 'POST',
        path: '/v1/webhooks',
        headers: { 'x-api-key': tenant.apiKey },
        body: { url: `http://127.0.0.1:${port}${path}`, event_types: ['*'] },
      });
      if (created.status !== 201) throw new Error(`the subscription was answered ${created.status}: ${created.text}`);
      subscriber.webhookId = created.body.webhook_id;
      subscriber.secret = created.body.secret;
      return subscriber;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function verify(secret: string, body: Buffer, headers: Record<string, string>): Json | undefined {
  try {
    return new Webhook(secret).verify(body.toString(), headers);
  } catch {
    return undefined;
  }
}

function answer(response: ServerResponse, subscriber: Mutable, event: Json, seen: Set<string>): unknown {
  if (!event) return response.writeHead(400).end();
  const firstTime = !seen.has(`${subscriber.webhookId} ${event.id}`);
  seen.add(`${subscriber.webhookId} ${event.id}`);
  switch (subscriber.manner) {
    case 'hangs':
      return undefined;
    case 'gone':
      return response.writeHead(410).end();
    case 'always_fails':
      return response.writeHead(500).end();
    case 'fails_at_first':
      // Every eighth event fails once: the first retry comes after five seconds.
      if (firstTime && event.id.endsWith('0')) return response.writeHead(503).end();
      break;
    default:
  }
  subscriber.events.set(event.id, event);
  return response.writeHead(200).end();
}
