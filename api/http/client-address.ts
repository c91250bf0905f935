/**
 * Who sent a request, where the service stands behind proxies (contract §16). A proxy adds the address that it talked
 * to at the right end of `X-Forwarded-For`. So the list is read from the right, as long as the address before was a
 * trusted proxy: whatever a caller wrote there itself stands further left. No other forwarding header is believed.
 */
import type { IncomingMessage } from 'node:http';
import {
  type AddressBlock,
  isInBlock,
  type NetworkAddress,
  parseAddress,
  truncatedAddress,
} from '../../domain/network-address.ts';
import { headerLines } from './header-lines.ts';

export type ClientAddress = {
  /** What limits count by. One customer of a network provider has a whole IPv6 /64. */
  readonly limitKey: string;
  /** For logs: short enough to be no person's address, long enough to find a network (IPv4 /24, IPv6 /48). */
  readonly logged: string;
  /** Whether the request names a client in `X-Forwarded-For` and came from an address that is not trusted. */
  readonly isUnbelieved: boolean;
};

const LIMITED = { ipv4: 32, ipv6: 64 };
const LOGGED = { ipv4: 24, ipv6: 48 };

/** A socket that has no address any more, or a Unix socket. */
const UNKNOWN = 'unknown';

/** @param trusted the proxies whose `X-Forwarded-For` is believed */
export const createClientAddress =
  (trusted: readonly AddressBlock[]) =>
  (request: Pick<IncomingMessage, 'rawHeaders' | 'socket'>): ClientAddress => {
    const peer = parseAddress(request.socket.remoteAddress ?? '');
    const isTrusted = (address: NetworkAddress) => trusted.some((block) => isInBlock(address, block));
    const forwarded = headerLines(request, 'x-forwarded-for');
    const client = peer && isTrusted(peer) ? clientOf(peer, forwarded, isTrusted) : peer;
    return {
      limitKey: client ? truncatedAddress(client, LIMITED) : UNKNOWN,
      logged: client ? truncatedAddress(client, LOGGED) : UNKNOWN,
      isUnbelieved: forwarded.length > 0 && peer !== undefined && !isTrusted(peer),
    };
  };

/** An entry that is no address ends the walk: the proxy that sent it stands for its clients. */
function clientOf(
  peer: NetworkAddress,
  lines: readonly string[],
  isTrusted: (address: NetworkAddress) => boolean,
): NetworkAddress {
  let client = peer;
  for (const entry of lines.join(',').split(',').toReversed()) {
    const hop = parseAddress(entry.trim());
    if (!hop) return client;
    client = hop;
    if (!isTrusted(hop)) return client;
  }
  return client;
}
