/** A subscriber as tests need one: a real HTTP server that records what it is sent and answers as it is told. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Caller, TestApi } from './api.ts';
import { type Json, jsonOf } from './partner.ts';

const WAIT_MS = 15_000;
const POLL_MS = 10;

export type Received = { readonly headers: IncomingHttpHeaders; readonly body: Buffer; readonly path: string };

export type Receiver = {
  readonly url: string;
  readonly port: number;
  readonly received: Received[];
  /** How the next requests are answered; 200 unless told otherwise. */
  answer: (response: ServerResponse, request: Received) => void;
  /** The most requests that were under way at the same moment. */
  mostAtOnce(): number;
  close(): Promise<void>;
};

export async function startReceiver(port = 0): Promise<Receiver> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let now = 0;
  let most = 0;
  const server = createServer((request, response) => {
    now += 1;
    most = Math.max(most, now);
    response.once('close', () => {
      now -= 1;
    });
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const taken = { headers: request.headers, body: Buffer.concat(chunks), path: request.url ?? '' };
      received.push(taken);
      receiver.answer(response, taken);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const bound = (server.address() as AddressInfo).port;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${bound}/hook?token=query-secret`,
    port: bound,
    received,
    answer: (response) => response.end('ok'),
    mostAtOnce: () => most,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

/** A new subscription; with its secret. */
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

/** Has a ping sent; gives its delivery. */
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
  const list: Json[] = jsonOf(
    await api.call(caller, 'GET', `/v1/webhooks/${delivery.webhook_id}/deliveries?limit=100`),
  );
  return list.find(({ delivery_id }) => delivery_id === delivery.delivery_id);
}

/** Reads a delivery until it is as wanted. */
export async function untilDelivery(
  api: TestApi,
  caller: Caller,
  delivery: { readonly webhook_id: string; readonly delivery_id: string },
  wanted: (delivery: Json) => boolean,
): Promise<Json> {
  return await until(() => readDelivery(api, caller, delivery), wanted);
}

/** Repeats a reading until it is as wanted, which it must be in good time. */
export async function until<T>(read: () => Promise<T> | T, wanted: (value: T) => boolean): Promise<T> {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const value = await read();
    if (wanted(value)) return value;
    if (Date.now() > end) throw new Error(`never came: ${JSON.stringify(value)}`);
    await delay(POLL_MS);
  }
}
