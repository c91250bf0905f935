/** The end of a request: its answer, or that its caller has gone, whatever the server is doing with it. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { whenOver } from '../../api/http/request-end.ts';
import { WAIT } from '../support/patience.ts';

/** A server that answers when it is told to, and the paths of requests that are over. */
async function serve(onTestFinished: (end: () => void) => void) {
  const [over, held]: [string[], Map<string, ServerResponse>] = [[], new Map()];
  const server = createServer((request, response) => {
    const { url = '' } = request;
    held.set(url, response);
    request.resume();
    whenOver(request, response, () => over.push(url));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const ask = async (...paths: string[]) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.resume();
    for (const path of paths) socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`);
    await vi.waitUntil(() => paths.every((path) => held.has(path)), WAIT);
    return socket;
  };
  return { over, held, ask };
}

test('a request is over with its answer, once, also when its connection ends later', async ({ onTestFinished }) => {
  const { over, held, ask } = await serve(onTestFinished);
  const socket = await ask('/1', '/2');
  expect(over).toEqual([]);
  held.get('/1')?.end('done');
  await vi.waitUntil(() => over.length === 1, WAIT);
  held.get('/2')?.end('done');
  await vi.waitUntil(() => over.length === 2, WAIT);
  socket.destroy();
  const next = await ask('/3');
  next.destroy();
  await vi.waitUntil(() => over.length > 2, WAIT);
  expect(over).toEqual(['/1', '/2', '/3']);
});

test('each request of a connection is over when the caller goes, also one that waits behind another', async ({
  onTestFinished,
}) => {
  const { over, ask } = await serve(onTestFinished);
  const socket = await ask('/1', '/2', '/3');
  socket.destroy();
  await vi.waitUntil(() => over.length === 3, WAIT);
  expect(over.toSorted()).toEqual(['/1', '/2', '/3']);
});

test('a function that waits for the end of a request that is over is called soon', async ({ onTestFinished }) => {
  const { over, held, ask } = await serve(onTestFinished);
  const socket = await ask('/1');
  socket.destroy();
  await vi.waitUntil(() => over.length === 1, WAIT);
  const response = held.get('/1') ?? expect.unreachable();
  await new Promise<void>((resolve) => whenOver(response.req, response, resolve));
});
