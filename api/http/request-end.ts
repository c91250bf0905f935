/**
 * When a request is over: its answer was written, or its caller has gone. Fastify calls neither `onResponse` nor
 * `onRequestAbort` for a caller that goes after its body was read, and Node.js does not close an answer that waits
 * behind another one of its connection. Code that holds something for a request gives it back at this end.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const endsOf = new WeakMap<Socket, Set<() => void>>();

/** Whether the request is over. Its handler may still run. */
export const isOver = ({ socket }: IncomingMessage, response: ServerResponse): boolean =>
  socket.destroyed || response.destroyed;

/** Calls `end` once, when the request is over; soon, if it is over already. */
export function whenOver(request: IncomingMessage, response: ServerResponse, end: () => void): void {
  if (isOver(request, response)) {
    setImmediate(end);
    return;
  }
  const { socket } = request;
  const ends = endsOf.get(socket) ?? watch(socket);
  const endOnce = (): void => {
    if (ends.delete(endOnce)) end();
  };
  ends.add(endOnce);
  response.once('close', endOnce);
}

/** One listener for all requests of a connection. */
function watch(socket: Socket): Set<() => void> {
  const ends = new Set<() => void>();
  endsOf.set(socket, ends);
  socket.once('close', () => {
    for (const end of ends) end();
  });
  return ends;
}
