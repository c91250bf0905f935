/** A subscriber: a real HTTP server that records what it receives and answers as the test says. */
import type { ServerResponse } from 'node:http';
import { vi } from 'vitest';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { recordEvent } from '../../db/queries/event.ts';
import type { LaneClaim } from '../../db/queries/webhook-lane.ts';
import { type DeliveryStatus, LANE_KEYS } from '../../domain/webhook.ts';
import type { Caller, TestApi } from './api.ts';
import { type HttpServer, type Received, startHttpServer } from './http-server.ts';
import { type Json, jsonOf } from './partner.ts';
import { WAIT } from './patience.ts';

export type Receiver = HttpServer & {
  readonly received: Received[];
  /** Answers the next requests; 200 unless a test replaces it. */
  answer: (response: ServerResponse, request: Received) => void;
};

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const { url, ...server } = await startHttpServer((response, request) => {
    received.push(request);
    receiver.answer(response, request);
  });
  const receiver: Receiver = {
    ...server,
    url: `${url}/hook?token=query-secret`,
    received,
    answer: (response) => response.end('ok'),
  };
  return receiver;
}

/** What a subscriber answers, as the worker sees it. */
export const answered = (status: number): GuardedAnswer => ({
  status,
  error: status === 200 ? null : 'http_status',
  bytes: 0,
  sha256: Buffer.alloc(32),
  retryAfter: undefined,
  durationMs: 5,
  lostMs: null,
});

/** What the first statement of a lane claims that has every key. */
export const claimBy = (claimant: number, claim: Partial<LaneClaim> = {}): LaneClaim => ({
  claimant,
  takesOver: false,
  known: new Map(),
  keys: { from: 0, to: LANE_KEYS },
  after: undefined,
  limit: 100,
  firstMax: 100,
  free: new Map(),
  ...claim,
});

/** Ends deliveries, as their attempts or their subscription would. */
export const endAs = (
  { connection }: TestApi,
  status: Exclude<DeliveryStatus, 'pending'>,
  ...deliveryIds: readonly string[]
) =>
  connection.pool.query(
    `UPDATE webhook_deliveries SET status = $1, next_attempt_at = NULL, lane_key = NULL WHERE delivery_id = ANY ($2)`,
    [status, deliveryIds],
  );

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
