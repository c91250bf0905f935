/** Requests as bytes, which no HTTP client sends, and their answers. */
import { connect } from 'node:net';
import type { SeenAnswer } from '../support/conformance.ts';
import { stretched } from '../support/patience.ts';

const SILENCE_MS = stretched(8_000);

export type Wire = {
  /**
   * Sends the parts one after another, and reads until the server closes. `halfClose` closes the client's side at once.
   */
  exchange(parts: readonly (string | Buffer)[], options?: { readonly halfClose?: boolean }): Promise<SeenAnswer[]>;
};

/** @param localAddress the address of this machine to send from */
export const createWire = (port: number, localAddress = '127.0.0.1'): Wire => ({
  exchange: (parts, { halfClose = false } = {}) =>
    new Promise((resolve, reject) => {
      const received: Buffer[] = [];
      const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true }, () => {
        for (const part of parts) socket.write(part);
        if (halfClose) socket.end();
      });
      const silence = setTimeout(
        () => socket.destroy(new Error(`silence after ${Buffer.concat(received).toString('latin1')}`)),
        SILENCE_MS,
      );
      socket.on('data', (part: Buffer) => {
        received.push(part);
        silence.refresh();
      });
      socket.on('end', () => socket.end());
      socket.on('error', (error: Error & { code?: string }) => {
        // The server may close before it has read a refused request; the answers before that count.
        if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
      });
      socket.on('close', () => {
        clearTimeout(silence);
        resolve(answersIn(Buffer.concat(received)));
      });
    }),
});

/** The answers in the received bytes, without interim ones. */
function answersIn(bytes: Buffer): SeenAnswer[] {
  const text = bytes.toString('latin1');
  const start = text.indexOf('HTTP/1.1 ');
  const end = text.indexOf('\r\n\r\n', start);
  if (start < 0 || end < 0) return [];
  const [status = '', ...lines] = text.slice(start, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const statusCode = Number(status.split(' ')[1]);
  const length = Number(headers['content-length'] ?? 0);
  const rest = bytes.subarray(end + 4 + length);
  const body = bytes.subarray(end + 4, end + 4 + length).toString();
  return [...(statusCode < 200 ? [] : [{ statusCode, headers, body }]), ...answersIn(rest)];
}

/** One request with exactly these header lines, after which the connection closes. */
export const requestBytes = (start: string, lines: readonly string[], body: string | Buffer = ''): Buffer =>
  Buffer.concat([
    Buffer.from([`${start} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n'), 'latin1'),
    Buffer.from(body),
  ]);
