/** Callers that send a whole request and go before its answer: nothing of the request stays, however many do so. */
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { fastify } from 'fastify';
import { describe, expect, vi } from 'vitest';
import { BODIES_IN_FLIGHT_BYTES_MAX, SIGNED_BODY_BYTES_MAX } from '../../api/plugins/signed-body.ts';
import { unreadAnswer } from '../../api/plugins/unread-answer.ts';
import { recipientBody } from '../../scripts/sandbox/partner.ts';
import { whileLocked } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { collectGarbage } from '../support/garbage.ts';
import { WAIT } from '../support/patience.ts';
import { SIGNATURES } from './world.ts';

const AT_ONCE = 80;
const IN_FLIGHT = { ofOrganization: AT_ONCE / 2, ofAddress: AT_ONCE };

const test = withApi({ deps: { inFlight: IN_FLIGHT } });

type Request = { readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly body: string };

/** Sends a whole request, whose body has no declared length. */
async function send(port: number, { path, headers, body }: Request): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const lines = Object.entries({ 'Content-Type': 'application/json', ...headers, 'Transfer-Encoding': 'chunked' });
  const head = [`POST ${path} HTTP/1.1`, 'Host: x', ...lines.map(([name, value]) => `${name}: ${value}`)].join('\r\n');
  socket.write(`${head}\r\n\r\n${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  return socket;
}

/** Sends so many requests while a table is locked, and ends their connections before they are answered. */
const withGone = test.extend('sendAndGo', ({ api, port }) => async (table: string, count: number, request: Request) => {
  const { server } = api.app;
  let arrived: IncomingMessage[] = [];
  const onArrival = (received: IncomingMessage) => void arrived.push(received);
  server.on('request', onArrival);
  for (let left = count; left > 0; left -= AT_ONCE) {
    arrived = [];
    await whileLocked(api.owner.pool, `LOCK TABLE ${table} IN EXCLUSIVE MODE`, async () => {
      const sockets = await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, () => send(port, request)));
      const areRead = () => arrived.length === sockets.length && arrived.every(({ complete }) => complete);
      await vi.waitUntil(areRead, WAIT);
      for (const socket of sockets) socket.destroy();
      await vi.waitUntil(async () => (await connectionsOf(server)) === 0, WAIT);
    });
  }
  server.off('request', onArrival);
});

const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));

describe('a caller that goes before its answer', () => {
  withGone.for<[string, string]>([
    ['while its key is looked up', 'rate_limits'],
    ['while its request is carried out', 'recipients'],
  ])('gives back the places of its organization and of its address: %s', async ([, table], { api, sendAndGo }) => {
    const caller = await api.createCaller();
    const request = {
      path: '/v1/recipients',
      headers: { 'X-API-Key': caller.apiKey },
      body: JSON.stringify(recipientBody()),
    };
    await sendAndGo(table, IN_FLIGHT.ofAddress, request);
    const answers = await Promise.all(
      Array.from({ length: IN_FLIGHT.ofOrganization }, () => api.call(caller, 'GET', '/v1/recipients')),
    );
    expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
  });

  withGone('gives back the bytes of its provider event', async ({ api, sendAndGo }) => {
    const path = '/v2/webhooks/bankledger';
    const body = '{"id":"evt_gone","event":"unknown"}';
    const headers = SIGNATURES[`POST ${path}`]?.(Buffer.from(body)) ?? {};
    await sendAndGo('provider_events', BODIES_IN_FLIGHT_BYTES_MAX / SIGNED_BODY_BYTES_MAX, { path, headers, body });
    const answer = await api.app.inject({
      ...{ method: 'POST', url: path, payload: body },
      headers: { 'content-type': 'application/json', ...headers },
    });
    expect(answer.statusCode).toBe(200);
  });

  test('leaves no request in memory', async ({ onTestFinished }) => {
    const app = fastify({ forceCloseConnections: true });
    await app.register(unreadAnswer, { answerTimeoutMs: 60_000, waitingBytesMax: Number.POSITIVE_INFINITY });
    const [requests, answers]: [WeakRef<object>[], (() => void)[]] = [[], []];
    app.addHook('onRequest', async (request) => void requests.push(new WeakRef(request)));
    app.post('/', () => new Promise((resolve) => answers.push(() => resolve({}))));
    onTestFinished(() => app.close());
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    const sockets = await Promise.all(
      Array.from({ length: AT_ONCE }, () => send(Number(port), { path: '/', headers: {}, body: '{}' })),
    );
    await vi.waitUntil(() => answers.length === AT_ONCE, WAIT);
    for (const socket of sockets) socket.destroy();
    await vi.waitUntil(async () => (await connectionsOf(app.server)) === 0, WAIT);
    for (const answer of answers.splice(0)) answer();
    await vi.waitUntil(() => {
      collectGarbage();
      return requests.every((request) => request.deref() === undefined);
    }, WAIT);
  });
});
