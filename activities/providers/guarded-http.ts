/**
 * Requests to URLs that partners choose (contract §11). Redirects are not followed, no proxy is used, and the size and
 * the time of an answer are limited. A caller may keep connections for requests to the same subscriber: each was
 * checked when it was opened (guarded-dial.ts).
 */
import { createHash } from 'node:crypto';
import type net from 'node:net';
import { Client, errors } from 'undici';
import type { AttemptError } from '../../domain/webhook.ts';
import { targetFault } from '../../domain/webhook-target.ts';
import { withLinkedAbort } from '../linked-abort.ts';
import { memoize } from '../memo.ts';
import { AttemptFailure, type DialOptions, dial, rejection } from './guarded-dial.ts';

/** The answer. Of its body, only the size and the digest of the bytes that were read are kept. */
export type GuardedAnswer = {
  readonly status: number | null;
  readonly error: AttemptError | null;
  readonly bytes: number | null;
  readonly sha256: Buffer | null;
  readonly retryAfter: string | undefined;
  /** Of the last request. */
  readonly durationMs: number;
  /** How long a first request took that was lost with a kept connection; null if there was none. */
  readonly lostMs: number | null;
};

export type GuardedHttp = {
  /**
   * Never throws because of the target: every failure is an `error` in the answer.
   *
   * @param kept where connections stay open for the next request; without it, the connection is closed
   */
  post(
    url: string,
    body: Buffer,
    headers: Readonly<Record<string, string>>,
    kept?: KeptConnections,
  ): Promise<GuardedAnswer>;
};

type OpenConnection = { readonly socket: net.Socket; readonly client: Client; isWatched: boolean };

/** So many idle connections are kept; the one that is idle for longest is closed for another. */
const IDLE_MAX = 256;

/** Open connections by origin. One that the subscriber closes is forgotten. To be closed by the caller. */
export type KeptConnections = {
  take(origin: string): OpenConnection | undefined;
  keep(origin: string, connection: OpenConnection): void;
  close(): void;
};

export function keepConnections(): KeptConnections {
  const idle = new Map<string, Set<OpenConnection>>();
  // In the order in which they became idle.
  const all = new Map<OpenConnection, string>();
  const forget = (connection: OpenConnection): void => {
    const origin = all.get(connection);
    all.delete(connection);
    if (origin === undefined) return;
    const connections = idle.get(origin);
    connections?.delete(connection);
    if (connections?.size === 0) idle.delete(origin);
  };
  return {
    take: (origin) => {
      for (const found of [...(idle.get(origin) ?? [])].reverse()) {
        forget(found);
        if (!found.socket.destroyed && !found.client.destroyed) return found;
        destroy(found);
      }
      return undefined;
    },
    keep: (origin, connection) => {
      if (!connection.isWatched) connection.socket.once('close', () => forget(connection));
      connection.isWatched = true;
      idle.set(origin, (idle.get(origin) ?? new Set()).add(connection));
      all.set(connection, origin);
      const [longest] = all.keys();
      if (all.size <= IDLE_MAX || !longest) return;
      forget(longest);
      destroy(longest);
    },
    close: () => {
      for (const connection of all.keys()) destroy(connection);
      idle.clear();
      all.clear();
    },
  };
}

function destroy({ socket, client }: OpenConnection): void {
  socket.destroy();
  client.destroy().catch(() => undefined);
}

export type GuardOptions = DialOptions & { readonly timeoutMs?: number };

const TOTAL_TIMEOUT_MS = 15_000;
const RESPONSE_BYTES_MAX = 16 * 1024;
/** For how many URLs the check of their text is remembered. Their addresses are checked at each connection. */
const TARGETS_MAX = 4_096;
/** Such an answer has no body (RFC 9112 §6.3). undici closes the connection if the head announces one. */
const NO_CONTENT = 204;
const NOTHING_READ = { bytes: 0, sha256: createHash('sha256').digest() };
const REDIRECTS = { min: 300, max: 399 } as const;

export function createGuardedHttp(options: GuardOptions): GuardedHttp {
  const targetOf = memoize(TARGETS_MAX, (url) => (targetFault(url, options.rules) ? undefined : new URL(url)));
  return {
    async post(url, body, headers, kept) {
      let startedAt = performance.now();
      let lostMs: number | null = null;
      const elapsedMs = () => Math.round(performance.now() - startedAt);
      const onLost = (): void => {
        lostMs = elapsedMs();
        startedAt = performance.now();
      };
      const attempt = async (signal: AbortSignal): Promise<Answer> => {
        try {
          const request = { url: targetOf(url), body, headers, signal, kept, onLost };
          return await Promise.race([exchange(options, request), rejection(signal)]);
        } catch (error) {
          const kind = signal.aborted ? 'timeout' : failureKind(error);
          return { status: null, error: kind, bytes: null, sha256: null, retryAfter: undefined };
        }
      };
      const answer = await withLinkedAbort([], attempt, options.timeoutMs ?? TOTAL_TIMEOUT_MS);
      return { ...answer, durationMs: elapsedMs(), lostMs };
    },
  };
}

type Exchange = {
  /** Undefined where no request may go. */
  readonly url: URL | undefined;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly kept: KeptConnections | undefined;
  /** The request was lost with a kept connection, and is sent once more. */
  readonly onLost: () => void;
};

type Answer = Omit<GuardedAnswer, 'durationMs' | 'lostMs'>;

async function exchange(options: GuardOptions, request: Exchange): Promise<Answer> {
  const { url, signal, kept, onLost } = request;
  if (!url) throw new AttemptFailure('blocked_target');
  const idle = kept?.take(url.origin);
  if (idle) {
    // The subscriber may have closed an idle connection at this moment. Then the request goes out on a new one. But
    // once an answer has begun, the subscriber has the request.
    const answer = await requestOn(idle, url, request).catch((error: unknown) => {
      if (signal.aborted || error instanceof AttemptFailure || failureKind(error) !== 'connection_lost') throw error;
      onLost();
      return undefined;
    });
    if (answer) return answer;
  }
  return await requestOn(await open(options, url, request), url, request);
}

async function open(options: GuardOptions, url: URL, { signal, kept }: Exchange): Promise<OpenConnection> {
  const socket = await dial(options, url, signal);
  let isUsed = false;
  // Called back later: undici loses a connection whose callback runs within the connector's own call.
  // It gives only this one socket: undici must not open another connection by itself.
  const connector = (_: unknown, callback: Connected) =>
    queueMicrotask(() => {
      if (isUsed) return callback(new Error('the connection is closed'), null);
      isUsed = true;
      callback(null, socket);
    });
  const pipelining = kept === undefined ? 0 : 1;
  const client = new Client(url.origin, { connect: connector, pipelining, headersTimeout: 0, bodyTimeout: 0 });
  return { socket, client, isWatched: false };
}

type Connected = (...connected: [error: Error, socket: null] | [error: null, socket: net.Socket]) => void;

/** Sends the request, reads the answer, and keeps the connection if the whole answer was read. */
async function requestOn(
  connection: OpenConnection,
  url: URL,
  { body, headers, signal, kept }: Exchange,
): Promise<Answer> {
  const { client, socket } = connection;
  let isComplete = false;
  try {
    const path = `${url.pathname}${url.search}`;
    const response = await client.request({ method: 'POST', path, headers, body, signal });
    const { statusCode: status } = response;
    const read = await readBounded(response.body).catch((error: unknown) => {
      if (status === NO_CONTENT && !signal.aborted) return NOTHING_READ;
      throw new AttemptFailure(failureKind(error));
    });
    isComplete = read.bytes < RESPONSE_BYTES_MAX;
    return { status, error: statusError(status), ...read, retryAfter: textOf(response.headers['retry-after']) };
  } finally {
    if (kept && isComplete && !signal.aborted && !socket.destroyed) kept.keep(url.origin, connection);
    else destroy(connection);
  }
}

const textOf = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined;

function statusError(status: number): AttemptError | null {
  if (status >= 200 && status <= 299) return null;
  return status >= REDIRECTS.min && status <= REDIRECTS.max ? 'redirect' : 'http_status';
}

/** Reads the body up to the limit. The rest is not read. */
async function readBounded(body: AsyncIterable<Buffer>): Promise<{ bytes: number; sha256: Buffer }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of body) {
    const part = chunk.subarray(0, RESPONSE_BYTES_MAX - bytes);
    hash.update(part);
    bytes += part.length;
    if (bytes >= RESPONSE_BYTES_MAX) break;
  }
  return { bytes, sha256: hash.digest() };
}

function failureKind(error: unknown): AttemptError {
  if (error instanceof AttemptFailure) return error.kind;
  if (error instanceof errors.HeadersOverflowError) return 'response_too_large';
  return error instanceof errors.HTTPParserError ? 'invalid_response' : 'connection_lost';
}
