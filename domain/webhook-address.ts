/**
 * Which network addresses a subscriber may have (contract §11). An IPv4 address is public unless it is listed. An IPv6
 * address is refused unless it is in the global unicast block and not listed there, so that unforeseen forms are
 * refused. An address that cannot be parsed is refused.
 */

import { type AddressBlock, IPV4_BITS, isInBlock, parseAddress, parseBlock } from './network-address.ts';

/** `loopback` is refused too, unless the local sandbox admits it. */
type AddressKind = 'public' | 'loopback' | 'refused';

/** Special-purpose blocks of the IANA registries, and a cloud's metadata address in a public block. */
const REFUSED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Inside the public block of IPv6: protocol assignments and Teredo, documentation, 6to4, AS112.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
].map(readBlock);
const IPV6_PUBLIC = readBlock('2000::/3');
const LOOPBACK = ['127.0.0.0/8', '::1/128'].map(readBlock);

/** Classifies an address. `::ffff:a.b.c.d` is classified as its IPv4 address, because a connection goes there. */
export function addressKind(text: string): AddressKind {
  const address = text.includes('%') ? undefined : parseAddress(text);
  if (!address) return 'refused';
  if (LOOPBACK.some((block) => isInBlock(address, block))) return 'loopback';
  const isAllowed = address.bits === IPV4_BITS || isInBlock(address, IPV6_PUBLIC);
  return isAllowed && !REFUSED.some((block) => isInBlock(address, block)) ? 'public' : 'refused';
}

/** Whether two texts are the same address, however they are written. */
export function isSameAddress(left: string, right: string): boolean {
  const [one, other] = [parseAddress(left), parseAddress(right)];
  return one !== undefined && one.value === other?.value && one.bits === other.bits;
}

/** Whether the text is an address, not a name. The URL parser has already turned a host such as `0x7f.1` into one. */
export const isAddress = (text: string): boolean => parseAddress(text) !== undefined || text.includes(':');

function readBlock(text: string): AddressBlock {
  const block = parseBlock(text);
  if (!block) throw new Error(`invalid block of addresses: ${text}`);
  return block;
}
