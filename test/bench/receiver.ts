/** The endpoints of subscribers, in this process. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Arrival = {
  readonly path: string;
  readonly eventId: string;
  readonly body: Buffer;
  /** By `performance.now()`, when the whole request had arrived. */
  readonly atMs: number;
};

/** @param answer returns the status of the answer */
export async function startReceiver(answer: (arrival: Arrival) => number | Promise<number>) {
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', async () => {
      const { url: path = '', headers } = incoming;
      const eventId = String(headers['webhook-id']);
      const status = await answer({ path, eventId, body: Buffer.concat(chunks), atMs: performance.now() });
      response.writeHead(status).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
