/**
 * What is not HTTP, or does not come in time, never reaches a route: it is answered here on the bare socket, in the
 * same shape, and the connection is closed.
 */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DomainError, ERROR_TEXT } from '../domain/error.ts';
import { STATUS_OF, sendProblem } from './error-handler.ts';

const STATUS_OF_FAULT: Record<string, number> = { ERR_HTTP_REQUEST_TIMEOUT: STATUS_OF.request_timeout, HPE_HEADER_OVERFLOW: 431 };
const BAD_REQUEST = 400;

export function handleClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = STATUS_OF_FAULT[error.code ?? ''] ?? BAD_REQUEST;
  const requestId = randomUUID();
  const named =
    status === STATUS_OF.request_timeout ? { type: '/problems/request_timeout', ...ERROR_TEXT.request_timeout, code: 'request_timeout' } : unnamed(status);
  const body = JSON.stringify({ ...named, status, instance: '', request_id: requestId });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-ID: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** An address that cannot be read, `/v1/recipients/%zz`, names nothing; Fastify would answer it before any hook. */
export function handleAddressError(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'X-Request-ID': request.id, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' });
  sendProblem(reply, request, new DomainError('not_found', {}, 'There is no such address.'));
}

/** The interface has no code for what is no request at all (RFC 9457: `about:blank`). */
const unnamed = (status: number) => ({
  type: 'about:blank',
  title: STATUS_CODES[status] ?? 'Bad Request',
  detail: 'The server could not read this as an HTTP request.',
});
