import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { expect, vi } from 'vitest';
import { closeApp, createDrain } from '../../api/http/drain.ts';
import type { TemporalHealth } from '../../domain/temporal-health.ts';
import { withApi } from '../support/fixture.ts';
import { settle } from '../support/partner.ts';
import { stretched, WAIT } from '../support/patience.ts';

/** No test waits for it. */
const LINGER_MS = 60_000;
const SHORT_LINGER_MS = 200;

/**
 * A service for each test. Its readiness reads Temporal's health, which answers when the test calls `letGo`: such a
 * request stays open.
 */
const test = withApi().extend('service', async ({ newApi, onTestFinished }) => {
  let letGo: () => void = () => undefined;
  const health = new Promise<TemporalHealth>((resolve) => {
    letGo = () => resolve({ status: 'up', cause: null });
  });
  let noteArrival: () => void = () => undefined;
  const arrived = new Promise<void>((resolve) => {
    noteArrival = resolve;
  });
  const temporalHealth = () => {
    noteArrival();
    return health;
  };
  const api = await newApi({ deps: { temporalHealth } });
  const agent = new Agent({ connections: 1 });
  onTestFinished(async () => {
    letGo();
    await agent.destroy();
  });
  let origin = '';
  const listen = async (lingerMs: number): Promise<() => Promise<void>> => {
    const drain = createDrain(api.app.server, lingerMs);
    origin = await api.app.listen({ host: '127.0.0.1', port: 0 });
    return drain;
  };
  const ask = async (path: string, options: { dispatcher?: Agent; headers?: Record<string, string> } = {}) => {
    const { statusCode, headers, body } = await request(`${origin}${path}`, { dispatcher: agent, ...options });
    await body.dump();
    return { statusCode, connection: headers['connection'] };
  };
  return { api, listen, ask, arrived, letGo };
});

test('new connections are refused while an open request is answered, and its connection closes', async ({
  service,
}) => {
  const drain = await service.listen(LINGER_MS);
  const answer = service.ask('/health/ready');
  await service.arrived;
  const drained = drain();
  await expect(service.ask('/health/live', { dispatcher: new Agent() })).rejects.toMatchObject({
    code: 'ECONNREFUSED',
  });
  service.letGo();
  expect(await answer).toEqual({ statusCode: 200, connection: 'close' });
  await drained;
});

test('a request on a kept connection is answered, and the shutdown waits no longer', async ({ service }) => {
  const drain = await service.listen(LINGER_MS);
  expect(await service.ask('/health/live')).toEqual({ statusCode: 200, connection: 'keep-alive' });
  const startedAt = performance.now();
  const drained = drain();
  expect(await service.ask('/health/live')).toEqual({ statusCode: 200, connection: 'close' });
  await drained;
  expect(performance.now() - startedAt).toBeLessThan(LINGER_MS);
});

test('an idle connection stays open for a moment, because a request may be on its way', async ({ service }) => {
  const drain = await service.listen(SHORT_LINGER_MS);
  await service.ask('/health/live');
  const drained = drain().then(() => 'drained');
  expect(await Promise.race([drained, delay(SHORT_LINGER_MS / 2, 'lingering')])).toBe('lingering');
  expect(await drained).toBe('drained');
});

test('a read that waits for a change is answered with the present state at shutdown', async ({ service }) => {
  const drain = await service.listen(SHORT_LINGER_MS);
  const caller = await service.api.createCaller();
  const settlementId = await settle(service.api, caller);
  const subscribe = vi.spyOn(service.api.deps.changes, 'subscribe');
  const startedAt = performance.now();
  const answer = service.ask(`/v2/settle/${settlementId}`, {
    headers: { 'x-api-key': caller.apiKey, prefer: 'wait=30' },
  });
  await vi.waitUntil(() => subscribe.mock.calls.length === 1, WAIT);
  await drain();
  await service.api.app.close();
  expect(await answer).toEqual({ statusCode: 200, connection: 'close' });
  expect(performance.now() - startedAt).toBeLessThan(stretched(15_000));
});

test('a request that is complete only while the application closes is answered as every other one', async ({
  service,
}) => {
  const drain = await service.listen(SHORT_LINGER_MS);
  const { port } = service.api.app.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: late-1\r\n');
  await once(socket, 'connect');
  await drain();
  const closed = service.api.app.close();
  await delay(SHORT_LINGER_MS);
  socket.write('\r\n');
  const answer = await text(socket);
  await closed;
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  expect(answer).toMatch(/^x-request-id: late-1\r$/im);
  expect(answer).toMatch(/^connection: close\r$/im);
});

test('a request without an end holds up the shutdown for a bounded time', async ({ service }) => {
  const drain = await service.listen(SHORT_LINGER_MS);
  const answer = expect(service.ask('/health/ready')).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
  await service.arrived;
  await drain();
  await closeApp(service.api.app, 200);
  await answer;
});

test('an answer that has begun is not touched, and reaches its caller', async ({ onTestFinished }) => {
  const begun: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    response.write('begun');
    begun.push(response);
  });
  onTestFinished(() => server.closeAllConnections());
  const drain = createDrain(server, SHORT_LINGER_MS);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await drain();
  begun[0]?.end(', done');
  expect(await answer.text()).toBe('begun, done');
});
