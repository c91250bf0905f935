/** Clients that hold connections and send next to nothing are cut off, and cost nobody else an answer. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIMITS } from '../../api/app.ts';
import { openSlowClients } from '../bench/slow-client.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { until } from '../support/webhook.ts';

const CONNECTIONS = 400;
const READS = 100;
const LONGEST_MS = LIMITS.requestTimeoutMs + 3 * LIMITS.connectionsCheckingIntervalMs;

let api: TestApi;
let baseUrl: string;
let port: number;
let caller: Caller;

beforeAll(async () => {
  api = await createTestApi();
  baseUrl = await api.app.listen({ host: '127.0.0.1', port: 0 });
  port = Number(new URL(baseUrl).port);
  caller = await api.createCaller('read');
});
afterAll(() => api.close());

const read = () => fetch(`${baseUrl}/v2/payment-methods`, { headers: { 'x-api-key': caller.apiKey } });

test.concurrent('everybody else is answered beside hundreds of them, and each of them is ended with 408', {
  timeout: 60_000,
}, async () => {
  const clients = await openSlowClients({ host: '127.0.0.1', port }, CONNECTIONS);
  try {
    const statuses = [];
    for (let done = 0; done < READS; done += 1) statuses.push((await read()).status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(clients.open()).toBeGreaterThan(CONNECTIONS / 2);
    const ended = async () => [...clients.ended.values()].reduce((sum, count) => sum + count, 0);
    // Every one of them has been cut off once by then, whatever it drips.
    await delay(LONGEST_MS);
    expect(await until(ended, (count) => count >= CONNECTIONS)).toBeGreaterThanOrEqual(CONNECTIONS);
    expect([...clients.ended.keys()].filter((status) => status !== 408)).toEqual([]);
    expect((await read()).status).toBe(200);
  } finally {
    clients.close();
  }
});

test.concurrent('a connection that has been answered and says nothing more is closed', {
  timeout: 60_000,
}, async () => {
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  const startedAt = performance.now();
  socket.resume();
  await once(socket, 'close');
  expect(performance.now() - startedAt).toBeLessThan(
    LIMITS.keepAliveTimeoutMs + 3 * LIMITS.connectionsCheckingIntervalMs + 2_000,
  );
});
