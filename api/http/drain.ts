/**
 * How the API's process leaves without a caller losing anything: it takes no new connection, answers what still comes
 * on the ones there are, and has each of them end with an answer. Closing the application at once would do otherwise:
 * it refuses what comes on a kept connection, and idle connections end at the moment a caller may be writing on them.
 */
import type { Server, ServerResponse } from 'node:http';
import { Server as TcpServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const LINGER_MS = 2_000;
const POLL_MS = 20;

/**
 * @param server before it listens
 * @returns ends when no connection is left, or when the idle ones have had their time; what is under way is then for
 * the application's own closing to wait for
 */
export function createDrain(server: Server, lingerMs = LINGER_MS): () => Promise<void> {
  const underWay = new Set<ServerResponse>();
  let draining = false;
  // Before the application's own listener, which may answer at once.
  server.prependListener('request', (_request, response) => {
    if (draining) return announceEnd(response);
    underWay.add(response);
    response.once('close', () => underWay.delete(response));
  });
  return async () => {
    draining = true;
    for (const response of underWay) announceEnd(response);
    // Not the HTTP server's own `close`, which also ends every idle connection.
    TcpServer.prototype.close.call(server);
    const end = performance.now() + lingerMs;
    while (performance.now() < end && (await countConnections(server)) > 0) await delay(POLL_MS);
  };
}

function announceEnd(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

const countConnections = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
