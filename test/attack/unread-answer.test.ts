/** Callers that ask for a lot and read nothing: their connections end, and they cost little memory meanwhile. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fastify } from 'fastify';
import { describe, expect, vi } from 'vitest';
import { LIMITS } from '../../api/app.ts';
import { type AnswerLimits, unreadAnswer } from '../../api/plugins/unread-answer.ts';
import { withApi } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';

const CLIENTS = 200;
/** Of the document, 0.3 MB each. Every tenth client asks for more than the system keeps for one connection. */
const PIPELINED = 2;
const PIPELINED_MANY = 24;
const MEMORY_MAX_BYTES = 96 * 1024 * 1024;

const test = withApi();

/** Sends requests and never reads. */
const ask = (port: number, path: string, times: number): Socket => {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times));
  socket.pause();
  return socket;
};

test('hundreds of unread answers cost little memory, each has the time of an answer, and others are answered', async ({
  port,
  onTestFinished,
}) => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const sockets: Socket[] = [];
  onTestFinished(() => {
    timers.mockRestore();
    for (const socket of sockets) socket.destroy();
  });
  const limited = () => timers.mock.calls.filter(([, ms]) => ms === LIMITS.answerTimeoutMs).length;
  const before = process.memoryUsage().rss;
  for (let n = 0; n < CLIENTS; n += 1)
    sockets.push(ask(port, '/openapi.json', n % 10 === 0 ? PIPELINED_MANY : PIPELINED));
  await vi.waitUntil(() => limited() >= CLIENTS, WAIT);
  expect((await fetch(`http://127.0.0.1:${port}/health/live`)).status).toBe(200);
  expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY_MAX_BYTES);
});

test('connections have a limit', async ({ api }) => {
  expect(api.app.server.maxConnections).toBe(LIMITS.connectionsMax);
  expect(api.app.server.timeout).toBe(LIMITS.idleTimeoutMs);
});

describe('an answer that is not read', () => {
  /** More than the system keeps for one connection. */
  const BODY = Buffer.alloc(16 * 1024 * 1024);

  /** A server with these limits and no others, and its connections in their order. */
  async function serve(limits: AnswerLimits, onTestFinished: (end: () => Promise<void>) => void) {
    const app = fastify({ forceCloseConnections: true });
    await app.register(unreadAnswer, limits);
    app.get('/own', async () => BODY);
    app.get('/shared', async (_request, reply) => {
      reply.hasSharedBody = true;
      return BODY;
    });
    const held: Socket[] = [];
    app.server.on('connection', (socket: Socket) => held.push(socket));
    const clients: Socket[] = [];
    onTestFinished(async () => {
      for (const client of clients) client.destroy();
      await app.close();
    });
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
    /** Asks, and takes only the beginning of the answer. */
    const askFor = async (path: string): Promise<Socket> => {
      const client = ask(Number(port), path, 1);
      clients.push(client);
      await once(client, 'readable');
      return client;
    };
    return { askFor, open: () => held.map((socket) => !socket.destroyed) };
  }

  test('ends after its time, also when it is read slowly', async ({ onTestFinished }) => {
    const limits = { answerTimeoutMs: 1_000, waitingBytesMax: Number.POSITIVE_INFINITY };
    const { askFor, open } = await serve(limits, onTestFinished);
    const askedMs = performance.now();
    const client = await askFor('/own');
    const reading = setInterval(() => client.read(1_024), 50);
    await vi.waitUntil(() => !open().includes(true), { ...WAIT, interval: 10 });
    expect(performance.now() - askedMs).toBeGreaterThan(limits.answerTimeoutMs * 0.9);
    clearInterval(reading);
  });

  test('ends when newer ones wait for more memory than all may use, and a shared body uses none and stays', async ({
    onTestFinished,
  }) => {
    const limits = { answerTimeoutMs: 60_000, waitingBytesMax: 2.5 * BODY.length };
    const { askFor, open } = await serve(limits, onTestFinished);
    for (const path of ['/own', '/shared', '/own', '/shared', '/own', '/shared', '/own']) await askFor(path);
    await vi.waitUntil(() => open().includes(false), WAIT);
    expect(open()).toEqual([false, true, false, true, true, true, true]);
  });
});
