/** An HTTP server on this machine that reads each request to its end before it answers. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Received = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
};

export type HttpServer = {
  readonly url: string;
  /** Breaks what is still connected. */
  close(): Promise<void>;
};

/** Runs this beside an endpoint that answers every request at once. */
export async function withReceiver<T>(run: (url: string) => Promise<T>): Promise<T> {
  const receiver = await startHttpServer((response) => response.writeHead(204).end());
  return await run(receiver.url).finally(receiver.close);
}

export async function startHttpServer(
  answer: (response: ServerResponse, received: Received) => unknown,
): Promise<HttpServer> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      answer(response, { method, path: url, headers, body: Buffer.concat(chunks) });
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  return { url: `http://127.0.0.1:${port}`, close };
}
