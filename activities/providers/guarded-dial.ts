/**
 * Connections to addresses that partners choose (contract §11). This module resolves the name itself, and every address
 * of the name must be public. It connects to one of the checked addresses, and checks the address of the open
 * connection again: the addresses of a name may change at any time. TLS is verified against the name.
 */
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import tls from 'node:tls';
import type { AttemptError } from '../../domain/webhook.ts';
import { isAddress, isSameAddress } from '../../domain/webhook-address.ts';
import { admitsAddress, isLoopbackHost, type TargetRules, targetHost } from '../../domain/webhook-target.ts';
import { withLinkedAbort } from '../linked-abort.ts';

export type DialOptions = {
  readonly rules: TargetRules;
  /** All IPv4 and IPv6 addresses of a name; rejects when the name has no address. */
  readonly resolve: (hostname: string) => Promise<readonly string[]>;
  /** Opens a TCP connection; by default, the operating system does. For tests. */
  readonly dial?: (address: string, port: number) => net.Socket;
  /** Trusted instead of the well-known certificate authorities. For tests. */
  readonly ca?: string;
};

const DNS_TIMEOUT_MS = 2_000;
/** For all addresses of a name together. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How long an address has before the next one is dialled too. */
const HEAD_START_MS = 250;
const TLS_TIMEOUT_MS = 5_000;
const HTTPS_PORT = 443;

/** The reason why there is no answer. */
export class AttemptFailure extends Error {
  readonly kind: AttemptError;
  constructor(kind: AttemptError) {
    super(kind);
    this.name = 'AttemptFailure';
    this.kind = kind;
  }
}

/** @throws AttemptFailure when no connection may or can be opened */
export async function dial(options: DialOptions, url: URL, signal: AbortSignal): Promise<net.Socket> {
  const host = targetHost(url);
  const addresses = await resolve(options, host, signal);
  if (addresses.length === 0) throw new AttemptFailure('dns');
  // One refused address refuses the name: the name's owner could choose which address we connect to.
  if (!addresses.every((address) => admitsAddress(address, options.rules))) throw new AttemptFailure('blocked_target');
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  const connect = (deadline: AbortSignal) => dialFirst(options, addresses, port, deadline);
  const socket = await withLinkedAbort([signal], connect, CONNECT_TIMEOUT_MS);
  if (url.protocol !== 'https:') return socket;
  return await withLinkedAbort([signal], (deadline) => secure(socket, host, options.ca, deadline), TLS_TIMEOUT_MS);
}

async function resolve(
  { rules, resolve: lookup }: DialOptions,
  host: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (isAddress(host)) return [host];
  if (rules.allowLocal && isLoopbackHost(host)) return ['127.0.0.1', '::1'];
  try {
    const answer = (deadline: AbortSignal) => Promise.race([lookup(host), rejection(deadline)]);
    return await withLinkedAbort([signal], answer, DNS_TIMEOUT_MS);
  } catch {
    throw new AttemptFailure('dns');
  }
}

/** Rejects when the signal is aborted. */
export function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('timeout')), { once: true });
  });
}

/**
 * Connects to the first address that accepts a connection. A slow one goes on beside the next ones: so one dead address
 * hides no other.
 */
async function dialFirst(
  options: DialOptions,
  addresses: readonly string[],
  port: number,
  signal: AbortSignal,
): Promise<net.Socket> {
  const dialled = new Map<net.Socket, string>();
  const opening: Promise<net.Socket>[] = [];
  let reached: net.Socket | undefined;
  for (const address of addresses) {
    const socket = (options.dial ?? dialAddress)(address, port);
    dialled.set(socket, address);
    opening.push(opened(socket, 'connect', signal));
    const headStart = delay(HEAD_START_MS, undefined, { ref: false });
    reached = await Promise.race([Promise.any(opening), headStart]).catch(() => undefined);
    if (reached || signal.aborted) break;
  }
  reached ??= await Promise.any(opening).catch(() => undefined);
  for (const socket of dialled.keys()) if (socket !== reached) socket.destroy();
  if (!reached) throw new AttemptFailure('connect');
  const { remoteAddress = '' } = reached;
  const isChecked = isSameAddress(remoteAddress, dialled.get(reached) ?? '');
  if (isChecked && admitsAddress(remoteAddress, options.rules)) return reached;
  reached.destroy();
  throw new AttemptFailure('blocked_target');
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
