/**
 * Faults that never reach a route: bytes that are not HTTP, a request that does not arrive in time, an address that
 * cannot be decoded. Each is answered here with a problem, as routes answer. Where the request itself is unreadable,
 * the connection is closed after the answer.
 */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DomainError, ERROR_TEXT } from '../../domain/error.ts';
import { HEADERS_TOO_LARGE_STATUS, STATUS_OF, sendProblem, UNREADABLE_STATUS } from './error-handler.ts';
import { headerLines } from './header-lines.ts';

const STATUS_OF_FAULT: Record<string, number> = {
  ERR_HTTP_REQUEST_TIMEOUT: STATUS_OF.request_timeout,
  HPE_HEADER_OVERFLOW: HEADERS_TOO_LARGE_STATUS,
};
const UNREAD_MS = 2_000;

export function handleClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = STATUS_OF_FAULT[error.code ?? ''] ?? UNREADABLE_STATUS;
  const { headers, body } = refusal(status);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // A caller that does not read the answer keeps no connection.
  setTimeout(() => socket.destroy(), UNREAD_MS).unref();
}

/**
 * Whether the request has exactly one Host header. Of two, Node takes the first and others the last (RFC 9112 §3.2).
 */
export function namesOneHost(raw: IncomingMessage): boolean {
  const count = headerLines(raw, 'host').length;
  return count === 1 || (count === 0 && raw.httpVersion === '1.0');
}

/** Answers 400 to a request that Fastify accepted and HTTP does not allow. */
export function refuseUnreadable({ id }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { headers, body } = refusal(UNREADABLE_STATUS, id);
  return reply.code(UNREADABLE_STATUS).headers(headers).send(body);
}

function refusal(
  status: number,
  requestId: string = randomUUID(),
): { readonly headers: Record<string, string>; readonly body: string } {
  const named =
    status === STATUS_OF.request_timeout
      ? { type: '/problems/request_timeout', ...ERROR_TEXT.request_timeout, code: 'request_timeout' }
      : blankProblem(status);
  const body = JSON.stringify({ ...named, status, instance: '', request_id: requestId });
  return {
    headers: {
      'Content-Type': 'application/problem+json',
      'Content-Length': String(Buffer.byteLength(body)),
      'X-Request-ID': requestId,
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': 'no-store',
      Connection: 'close',
    },
    body,
  };
}

/** 404 for an address that cannot be decoded, such as `/v1/recipients/%zz`. Fastify calls no hook for it. */
export function handleAddressError(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'X-Request-ID': request.id, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' });
  sendProblem(reply, request, new DomainError('not_found', {}, 'There is no such address.'));
}

/** A problem without a code of ours (RFC 9457: `about:blank`), for bytes that are not an HTTP request. */
const blankProblem = (status: number) => ({
  type: 'about:blank',
  title: STATUS_CODES[status] ?? 'Bad Request',
  detail: 'The server could not read this as an HTTP request.',
});
