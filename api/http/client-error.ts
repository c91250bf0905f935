/**
 * Faults that never reach a route: bytes that are not HTTP, a request that does not arrive in time. Each is answered,
 * logged and counted as every other refusal, and the connection is closed after the answer.
 */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorCode } from '../../domain/error.ts';
import { problemOf, STATUS_OF } from './error-handler.ts';
import { headerLines } from './header-lines.ts';

const CODE_OF_FAULT: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
};
const UNREAD_MS = 2_000;

type ClientError = Error & { readonly code?: string };

/** The refusal of what a client sent; undefined when it is gone, and nothing can be answered. */
export const refusalOf = (error: ClientError, socket: Pick<Socket, 'writable'>): ErrorCode | undefined =>
  error.code === 'ECONNRESET' || !socket.writable
    ? undefined
    : (CODE_OF_FAULT[error.code ?? ''] ?? 'request_malformed');

/**
 * @param headers of every answer
 * @param log writes the access log's line
 */
export const createClientErrorHandler =
  (
    headers: Readonly<Record<string, string>>,
    log: (seen: { readonly requestId: string; readonly status: number; readonly socket: Socket }) => void,
  ) =>
  (error: ClientError, socket: Socket): void => {
    const code = refusalOf(error, socket);
    if (code === undefined) {
      socket.destroy();
      return;
    }
    const [status, requestId] = [STATUS_OF[code], randomUUID()];
    const body = JSON.stringify(problemOf(code, '', requestId));
    const sent = {
      ...headers,
      'Content-Type': 'application/problem+json',
      'Content-Length': String(Buffer.byteLength(body)),
      'X-Request-ID': requestId,
      Connection: 'close',
    };
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      ...Object.entries(sent).map(([name, value]) => `${name}: ${value}`),
    ];
    log({ requestId, status, socket });
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
    // A caller that does not read the answer keeps no connection.
    setTimeout(() => socket.destroy(), UNREAD_MS).unref();
  };

/**
 * Whether the request has exactly one Host header. Of two, Node takes the first and others the last (RFC 9112 §3.2).
 */
export function namesOneHost(raw: IncomingMessage): boolean {
  const count = headerLines(raw, 'host').length;
  return count === 1 || (count === 0 && raw.httpVersion === '1.0');
}
