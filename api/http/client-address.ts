/**
 * Who sent a request, if the service is behind proxies (contract §16). A proxy appends the address of its peer to
 * `X-Forwarded-For`. So the list is read from the right, as long as the address before was a trusted proxy: entries
 * that a caller wrote are further left. No other forwarding header is believed.
 */
import type { IncomingMessage } from 'node:http';
import {
  type AddressBlock,
  IPV4_BITS,
  IPV6_BITS,
  isInBlock,
  type NetworkAddress,
  parseAddress,
  parseHop,
  truncatedAddress,
} from '../../domain/network-address.ts';
import { headerLines } from './header-lines.ts';

export type ClientAddress = {
  /** The whole address, to compare with what a key allows; null when it is unknown. Never logged. */
  readonly exact: string | null;
  /** What limits count by. One customer of a network provider has a whole IPv6 /64. */
  readonly limitKey: string;
  /** For logs: short enough to be no person's address, long enough to find a network (IPv4 /24, IPv6 /48). */
  readonly logged: string;
  /** Why a client that `X-Forwarded-For` names was not taken, for a warning; undefined: it was, or none is named. */
  readonly doubt: 'untrusted_peer' | 'unreadable_entry' | undefined;
};

const WHOLE = { ipv4: IPV4_BITS, ipv6: IPV6_BITS };
const LIMITED = { ipv4: 32, ipv6: 64 };
const LOGGED = { ipv4: 24, ipv6: 48 };

/** For a socket that no longer has an address, or a Unix socket. */
const UNKNOWN = 'unknown';

/** @param trusted the proxies whose `X-Forwarded-For` is believed */
export function createClientAddress(trusted: readonly AddressBlock[]) {
  const isTrusted = (address: NetworkAddress) => trusted.some((block) => isInBlock(address, block));
  // The peer of a connection stays the same, and most requests name no other client.
  const peers = new WeakMap<object, Peer>();
  const peerOf = (socket: IncomingMessage['socket']): Peer => {
    const known = peers.get(socket);
    if (known) return known;
    const address = parseAddress(socket.remoteAddress ?? '');
    const peer = { address, isTrusted: address !== undefined && isTrusted(address), own: namesOf(address) };
    if (address) peers.set(socket, peer);
    return peer;
  };
  return (request: Pick<IncomingMessage, 'rawHeaders' | 'socket'>): ClientAddress => {
    const peer = peerOf(request.socket);
    const forwarded = headerLines(request, 'x-forwarded-for');
    if (forwarded.length === 0 || !peer.address) return peer.own;
    if (!peer.isTrusted) return { ...peer.own, doubt: 'untrusted_peer' };
    const { client, isReadable } = clientOf(peer.address, forwarded, isTrusted);
    return isReadable ? namesOf(client) : { ...namesOf(client), doubt: 'unreadable_entry' };
  };
}

/** What limits count an address by. */
export const limitKeyOf = (address: NetworkAddress): string => truncatedAddress(address, LIMITED);

type Peer = { readonly address: NetworkAddress | undefined; readonly isTrusted: boolean; readonly own: ClientAddress };

const namesOf = (client: NetworkAddress | undefined): ClientAddress => ({
  exact: client ? truncatedAddress(client, WHOLE) : null,
  limitKey: client ? limitKeyOf(client) : UNKNOWN,
  logged: client ? truncatedAddress(client, LOGGED) : UNKNOWN,
  doubt: undefined,
});

/** An entry that is no address ends the search: the proxy that sent it counts as the client. A port is left out. */
function clientOf(
  peer: NetworkAddress,
  lines: readonly string[],
  isTrusted: (address: NetworkAddress) => boolean,
): { readonly client: NetworkAddress; readonly isReadable: boolean } {
  let client = peer;
  for (const entry of lines.join(',').split(',').toReversed()) {
    const hop = parseHop(entry.trim());
    if (!hop) return { client, isReadable: false };
    client = hop;
    if (!isTrusted(hop)) break;
  }
  return { client, isReadable: true };
}
