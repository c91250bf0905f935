/**
 * Requests to URLs that partners choose (contract §11). This module resolves the name itself, and every address of the
 * name must be public. It connects to one of the checked addresses, and checks the address of the open connection
 * again: the addresses of a name may change at any time. TLS is verified against the name. Redirects are not followed,
 * no proxy is used, and the size and the time of an answer are limited. A caller may keep connections for requests to
 * the same subscriber: each was checked when it was opened.
 */
import { createHash } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { Client, errors } from 'undici';
import type { AttemptError } from '../../domain/webhook.ts';
import { isAddress, isSameAddress } from '../../domain/webhook-address.ts';
import {
  admitsAddress,
  isLoopbackHost,
  type TargetRules,
  targetFault,
  targetHost,
} from '../../domain/webhook-target.ts';

/** The answer. Of its body, only the size and the digest of the bytes that were read are kept. */
export type GuardedAnswer = {
  readonly status: number | null;
  readonly error: AttemptError | null;
  readonly bytes: number | null;
  readonly sha256: Buffer | null;
  readonly retryAfter: string | undefined;
  readonly durationMs: number;
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

type OpenConnection = { readonly socket: net.Socket; readonly client: Client };

/** Open connections by origin. To be closed by the caller. */
export type KeptConnections = {
  take(origin: string): OpenConnection | undefined;
  keep(origin: string, connection: OpenConnection): void;
  close(): void;
};

export function keepConnections(): KeptConnections {
  const idle = new Map<string, OpenConnection[]>();
  return {
    take: (origin) => {
      const connections = idle.get(origin) ?? [];
      for (let found = connections.pop(); found; found = connections.pop()) {
        if (!found.socket.destroyed && !found.client.destroyed) return found;
        destroy(found);
      }
      return undefined;
    },
    keep: (origin, connection) => {
      const connections = idle.get(origin) ?? [];
      connections.push(connection);
      idle.set(origin, connections);
    },
    close: () => {
      for (const connection of [...idle.values()].flat()) destroy(connection);
      idle.clear();
    },
  };
}

function destroy({ socket, client }: OpenConnection): void {
  socket.destroy();
  client.destroy().catch(() => undefined);
}

export type GuardOptions = {
  readonly rules: TargetRules;
  /** All IPv4 and IPv6 addresses of a name; rejects when the name has no address. */
  readonly resolve: (hostname: string) => Promise<readonly string[]>;
  /** Opens a TCP connection; by default, the operating system does. For tests. */
  readonly dial?: (address: string, port: number) => net.Socket;
  /** Trusted instead of the well-known certificate authorities. For tests. */
  readonly ca?: string;
  readonly timeoutMs?: number;
};

const TOTAL_TIMEOUT_MS = 15_000;
const DNS_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
const RESPONSE_BYTES_MAX = 16 * 1024;
const HTTPS_PORT = 443;
const REDIRECTS = { min: 300, max: 399 } as const;

/** The reason why there is no answer. */
class AttemptFailure extends Error {
  readonly kind: AttemptError;
  constructor(kind: AttemptError) {
    super(kind);
    this.name = 'AttemptFailure';
    this.kind = kind;
  }
}

export function createGuardedHttp(options: GuardOptions): GuardedHttp {
  return {
    async post(url, body, headers, kept) {
      const startedAt = performance.now();
      const signal = AbortSignal.timeout(options.timeoutMs ?? TOTAL_TIMEOUT_MS);
      const done = (answer: Omit<GuardedAnswer, 'durationMs'>): GuardedAnswer => ({
        ...answer,
        durationMs: Math.round(performance.now() - startedAt),
      });
      try {
        return done(await Promise.race([exchange(options, { url, body, headers, signal, kept }), rejection(signal)]));
      } catch (error) {
        return done({
          status: null,
          error: signal.aborted ? 'timeout' : failureKind(error),
          bytes: null,
          sha256: null,
          retryAfter: undefined,
        });
      }
    },
  };
}

type Exchange = {
  readonly url: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly kept: KeptConnections | undefined;
};

type Answer = Omit<GuardedAnswer, 'durationMs'>;

async function exchange(options: GuardOptions, request: Exchange): Promise<Answer> {
  const { url: text, signal, kept } = request;
  if (targetFault(text, options.rules) !== undefined) throw new AttemptFailure('blocked_target');
  const url = new URL(text);
  const idle = kept?.take(url.origin);
  if (idle) {
    // The subscriber may have closed an idle connection at this moment. Then the request goes out on a new one.
    const answer = await requestOn(idle, url, request).catch((error: unknown) => {
      if (signal.aborted || failureKind(error) !== 'connection_lost') throw error;
      return undefined;
    });
    if (answer) return answer;
  }
  return await requestOn(await open(options, url, request), url, request);
}

async function open(options: GuardOptions, url: URL, { signal, kept }: Exchange): Promise<OpenConnection> {
  const socket = await connect(options, url, signal);
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
  return { socket, client };
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
    const read = await readBounded(response.body);
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

async function connect(options: GuardOptions, url: URL, signal: AbortSignal): Promise<net.Socket> {
  const host = targetHost(url);
  const addresses = await resolve(options, host, signal);
  if (addresses.length === 0) throw new AttemptFailure('dns');
  // One refused address refuses the name: the name's owner could choose which address we connect to.
  if (!addresses.every((address) => admitsAddress(address, options.rules))) throw new AttemptFailure('blocked_target');
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]);
  const socket = await dialFirst(options, addresses, port, deadline);
  return url.protocol === 'https:' ? await secure(socket, host, options.ca, deadline) : socket;
}

async function resolve(
  { rules, resolve: lookup }: GuardOptions,
  host: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (isAddress(host)) return [host];
  if (rules.allowLocal && isLoopbackHost(host)) return ['127.0.0.1', '::1'];
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(DNS_TIMEOUT_MS)]);
  try {
    return await Promise.race([lookup(host), rejection(deadline)]);
  } catch {
    throw new AttemptFailure('dns');
  }
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('timeout')), { once: true });
  });
}

/** Connects to the first address that accepts a connection. */
async function dialFirst(
  options: GuardOptions,
  addresses: readonly string[],
  port: number,
  signal: AbortSignal,
): Promise<net.Socket> {
  for (const address of addresses) {
    const socket = (options.dial ?? dialAddress)(address, port);
    const reached = await opened(socket, 'connect', signal).catch(() => undefined);
    if (!reached) continue;
    const { remoteAddress = '' } = socket;
    if (admitsAddress(remoteAddress, options.rules) && isSameAddress(remoteAddress, address)) return socket;
    socket.destroy();
    throw new AttemptFailure('blocked_target');
  }
  throw new AttemptFailure('connect');
}

const dialAddress = (address: string, port: number): net.Socket =>
  net.connect({ host: address, port, autoSelectFamily: false });

async function secure(
  socket: net.Socket,
  host: string,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<net.Socket> {
  const name = isAddress(host) ? { host } : { host, servername: host };
  const trusted = ca === undefined ? {} : { ca };
  const secured = tls.connect({
    socket,
    ...name,
    ...trusted,
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  });
  try {
    return await opened(secured, 'secureConnect', signal);
  } catch {
    throw new AttemptFailure('tls');
  }
}

/** Waits until a socket is open. A socket that fails, or that is not open in time, is destroyed. */
function opened<Socket extends net.Socket>(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolveOpened, reject) => {
    const fail = () => {
      socket.destroy();
      reject(new AttemptFailure('connect'));
    };
    if (signal.aborted) return fail();
    signal.addEventListener('abort', fail, { once: true });
    socket.once('close', fail);
    // Not removed later: an error event without a listener ends the process.
    socket.on('error', fail);
    socket.once(event, () => {
      signal.removeEventListener('abort', fail);
      socket.off('close', fail);
      resolveOpened(socket);
    });
  });
}

function failureKind(error: unknown): AttemptError {
  if (error instanceof AttemptFailure) return error.kind;
  if (error instanceof errors.HeadersOverflowError) return 'response_too_large';
  return error instanceof errors.HTTPParserError ? 'invalid_response' : 'connection_lost';
}
