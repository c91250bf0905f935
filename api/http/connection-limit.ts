/**
 * How many connections an address may hold (IPv6 by its /64): one client that keeps connections alive would hold all of
 * them. A trusted proxy holds those of many clients, and has no limit of its own.
 */
import type { Server } from 'node:net';
import { createPlaces } from '../../db/places.ts';
import { type AddressBlock, isInBlock, parseAddress } from '../../domain/network-address.ts';
import { limitKeyOf } from './client-address.ts';

/** Closes each connection beyond the limit at once. */
export function limitConnections(
  server: Server,
  { maxOfAddress, trusted }: { readonly maxOfAddress: number; readonly trusted: readonly AddressBlock[] },
): void {
  const places = createPlaces(maxOfAddress);
  server.on('connection', (socket) => {
    const address = parseAddress(socket.remoteAddress ?? '');
    if (!address || trusted.some((block) => isInBlock(address, block))) return;
    const key = limitKeyOf(address);
    if (places.enter(key)) socket.once('close', () => places.leave(key));
    else socket.destroy();
  });
}
