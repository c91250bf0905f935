/**
 * When a request is over: its answer was written, or its caller has gone. Fastify calls neither `onResponse` nor
 * `onRequestAbort` for a caller that goes after its body was read, and Node.js does not close an answer that waits
 * behind another one of its connection. Code that holds something for a request gives it back at this end.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Ends = (() => void)[];

const endsOf = new WeakMap<ServerResponse, Ends>();
const underWayOf = new WeakMap<Socket, Set<() => void>>();

/** Whether the request is over. Its handler may still run. */
export const isOver = ({ socket }: IncomingMessage, response: ServerResponse): boolean =>
  socket.destroyed || response.destroyed;

/** Calls `end` once, when the request is over; soon, if it is over already. */
export function whenOver(request: IncomingMessage, response: ServerResponse, end: () => void): void {
  if (isOver(request, response)) setImmediate(end);
  else (endsOf.get(response) ?? watch(request.socket, response)).push(end);
}

/** One listener for all that waits for the end of a request. */
function watch(socket: Socket, response: ServerResponse): Ends {
  const ends: Ends = [];
  const underWay = underWayOf.get(socket) ?? watchSocket(socket);
  const endOnce = (): void => {
    if (!underWay.delete(endOnce)) return;
    endsOf.delete(response);
    for (const end of ends) end();
  };
  endsOf.set(response, ends);
  underWay.add(endOnce);
  response.once('close', endOnce);
  return ends;
}

/** One listener for all requests of a connection. */
function watchSocket(socket: Socket): Set<() => void> {
  const underWay = new Set<() => void>();
  underWayOf.set(socket, underWay);
  socket.once('close', () => {
    for (const end of underWay) end();
  });
  return underWay;
}
