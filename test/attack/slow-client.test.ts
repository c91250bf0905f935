/** Clients that hold connections and send almost nothing are cut off, and other callers are answered meanwhile. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { LIMITS } from '../../api/app.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';
import { openSlowClients } from './slow-client.ts';

const CONNECTIONS = 200;
const READS = 30;
const LONGEST_MS = LIMITS.requestTimeoutMs + 3 * LIMITS.connectionsCheckingIntervalMs;

const test = withApi({ scope: 'read' }).extend('read', FILE, ({ port, partner }) => async () => {
  const headers = { 'x-api-key': partner.apiKey };
  return (await fetch(`http://127.0.0.1:${port}/v2/payment-methods`, { headers })).status;
});

test.concurrent('hundreds of slow connections end with 408, and other callers are answered meanwhile', async ({
  port,
  read,
  onTestFinished,
}) => {
  const clients = await openSlowClients({ host: '127.0.0.1', port }, CONNECTIONS);
  onTestFinished(() => clients.close());
  const statuses = [];
  for (let done = 0; done < READS; done += 1) statuses.push(await read());
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(clients.open()).toBeGreaterThan(CONNECTIONS / 2);
  // By then the server has cut off every connection once, whatever it sends.
  await delay(LONGEST_MS);
  const ended = () => [...clients.ended.values()].reduce((sum, count) => sum + count, 0);
  await vi.waitUntil(() => ended() >= CONNECTIONS, WAIT);
  expect([...clients.ended.keys()].filter((status) => status !== 408)).toEqual([]);
  expect(await read()).toBe(200);
});

test.concurrent('a kept connection that sends nothing more is closed', async ({ port }) => {
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  const startedAt = performance.now();
  socket.resume();
  await once(socket, 'close');
  // The next limit that would close it.
  expect(performance.now() - startedAt).toBeLessThan(LIMITS.idleTimeoutMs);
});
