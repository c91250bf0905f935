/** A subscriber: a real HTTP server that records what it receives and answers as the test says. */
import type { ServerResponse } from 'node:http';
import { vi } from 'vitest';
import { recordEvent } from '../../db/queries/event.ts';
import type { Caller, TestApi } from './api.ts';
import { type HttpServer, type Received, startHttpServer } from './http-server.ts';
import { type Json, jsonOf } from './partner.ts';
import { WAIT } from './patience.ts';

export type Receiver = HttpServer & {
  readonly received: Received[];
  /** Answers the next requests; 200 unless a test replaces it. */
  answer: (response: ServerResponse, request: Received) => void;
  /** The highest number of requests at the same moment. */
  mostAtOnce(): number;
};

export async function startReceiver(wishedPort = 0): Promise<Receiver> {
  const received: Received[] = [];
  let now = 0;
  let most = 0;
  const { url, port, close } = await startHttpServer((response, request) => {
    now += 1;
    most = Math.max(most, now);
    response.once('close', () => {
      now -= 1;
    });
    received.push(request);
    receiver.answer(response, request);
  }, wishedPort);
  const receiver: Receiver = {
    url: `${url}/hook?token=query-secret`,
    port,
    received,
    answer: (response) => response.end('ok'),
    mostAtOnce: () => most,
    close,
  };
  return receiver;
}

/** Writes so many test events in one transaction, each with a delivery to the subscription. */
export const writePings = (
  api: TestApi,
  count: number,
  { orgId, webhookId }: { readonly orgId: string; readonly webhookId: string },
): Promise<void> =>
  api.connection.db.transaction(async (tx) => {
    const event = { orgId, objectType: 'webhook', objectId: webhookId, type: 'webhook.ping', data: {} } as const;
    for (let n = 0; n < count; n += 1) await recordEvent(tx, { ...event, at: new Date(), requestId: 'test' });
  });

/** A new subscription, with its secret. */
export async function subscribe(
  api: TestApi,
  caller: Caller,
  url: string,
  eventTypes: readonly string[] = ['*'],
): Promise<Json> {
  const answer = await api.call(caller, 'POST', '/v1/webhooks', { url, event_types: eventTypes });
  if (answer.statusCode !== 201) throw new Error(`subscription refused: ${answer.body}`);
  return jsonOf(answer);
}

/** Requests a test event. Returns its delivery. */
export async function ping(api: TestApi, caller: Caller, webhookId: string): Promise<Json> {
  const answer = await api.call(caller, 'POST', `/v1/webhooks/${webhookId}/test`);
  if (answer.statusCode !== 202) throw new Error(`ping refused: ${answer.body}`);
  return jsonOf(answer);
}

export async function readDelivery(
  api: TestApi,
  caller: Caller,
  delivery: { readonly webhook_id: string; readonly delivery_id: string },
): Promise<Json> {
  const list: Json = jsonOf(await api.call(caller, 'GET', `/v1/webhooks/${delivery.webhook_id}/deliveries?limit=100`));
  if (!Array.isArray(list)) throw new Error(JSON.stringify(list));
  return list.find(({ delivery_id }) => delivery_id === delivery.delivery_id);
}

/** Reads the delivery until it is as wanted. */
export async function untilDelivery(
  api: TestApi,
  caller: Caller,
  delivery: { readonly webhook_id: string; readonly delivery_id: string },
  wanted: (delivery: Json) => boolean,
): Promise<Json> {
  return await until(() => readDelivery(api, caller, delivery), wanted);
}

/** Reads until the value is as wanted. @throws Error with the last value after 15 s */
export async function until<T>(read: () => Promise<T> | T, wanted: (value: T) => boolean): Promise<T> {
  const readWanted = async (): Promise<T> => {
    const value = await read();
    if (!wanted(value)) throw new Error(`still ${JSON.stringify(value)}`);
    return value;
  };
  return await vi.waitFor(readWanted, WAIT);
}
