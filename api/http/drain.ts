/**
 * Stops the API's process so that no caller loses a request. It accepts no new connection, answers every request on the
 * open ones, and ends each connection with an answer that says `Connection: close`. `app.close()` alone would refuse
 * new requests on kept connections, and would end idle ones at a moment when a caller may be writing. A caller that
 * does not read its answer does not hold up the shutdown.
 */
import type { Server, ServerResponse } from 'node:http';
import { Server as TcpServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { whenOver } from './request-end.ts';

const LINGER_MS = 2_000;
const POLL_MS = 20;
/** Less than a caller may take to read an answer: the rest of the process must close in order, too. */
const CLOSE_MS = 12_000;

/**
 * @param server before it listens
 * @returns a function that resolves when no connection is left, or after `lingerMs`. Then call `closeApp`
 */
export function createDrain(server: Server, lingerMs = LINGER_MS): () => Promise<void> {
  const underWay = new Set<ServerResponse>();
  let draining = false;
  // Before the application's listener, which may answer at once.
  server.prependListener('request', (request, response) => {
    if (draining) return announceEnd(response);
    underWay.add(response);
    whenOver(request, response, () => underWay.delete(response));
  });
  return async () => {
    draining = true;
    for (const response of underWay) announceEnd(response);
    // The HTTP server's own `close` would also end every idle connection.
    TcpServer.prototype.close.call(server);
    const end = performance.now() + lingerMs;
    while (performance.now() < end && (await countConnections(server)) > 0) await delay(POLL_MS);
  };
}

/** Waits for the requests that are still running. After `limitMs` it ends their connections. */
export async function closeApp(app: FastifyInstance, limitMs = CLOSE_MS): Promise<void> {
  const limit = setTimeout(() => app.server.closeAllConnections(), limitMs);
  await app.close().finally(() => clearTimeout(limit));
}

function announceEnd(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

const countConnections = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
