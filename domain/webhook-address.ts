/**
 * Which network addresses a subscriber may have (contract §11). An IPv4 address is public unless it is listed. An IPv6
 * address is refused unless it is in the global unicast block and not listed there, so that unforeseen forms are
 * refused. An address that cannot be parsed is refused.
 */

import { block, IPV4_BITS, IPV4_MAPPED, IPV6_BITS, ipv4Value, ipv6Value, within } from './network-address.ts';

/** `loopback` is refused too, unless the local sandbox admits it. */
type AddressKind = 'public' | 'loopback' | 'refused';

/** Special-purpose blocks of the IANA registries, and a cloud's metadata address in a public block. */
const IPV4_REFUSED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
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
].map((text) => block(text, ipv4Value));

const IPV6_PUBLIC = block('2000::/3', ipv6Value);
/** Inside the public block: protocol assignments and Teredo, documentation, 6to4, AS112. */
const IPV6_REFUSED = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'].map((text) =>
  block(text, ipv6Value),
);

const IPV4_LOOPBACK = block('127.0.0.0/8', ipv4Value);
const IPV6_LOOPBACK = 1n;

/** Classifies an address. `::ffff:a.b.c.d` is classified as its IPv4 address, because a connection goes there. */
export function addressKind(text: string): AddressKind {
  const v4 = ipv4Value(text);
  if (v4 !== undefined) return ipv4Kind(v4);
  const v6 = ipv6Value(text);
  if (v6 === undefined) return 'refused';
  if (within(v6, IPV4_MAPPED, IPV6_BITS)) return ipv4Kind(v6 & 0xffff_ffffn);
  if (v6 === IPV6_LOOPBACK) return 'loopback';
  return within(v6, IPV6_PUBLIC, IPV6_BITS) && !IPV6_REFUSED.some((refused) => within(v6, refused, IPV6_BITS))
    ? 'public'
    : 'refused';
}

/** Whether two texts are the same address, however they are written. */
export function isSameAddress(left: string, right: string): boolean {
  const value = canonicalValue(left);
  return value !== undefined && value === canonicalValue(right);
}

/** Whether the text is an address, not a name. The URL parser has already turned a host such as `0x7f.1` into one. */
export const isAddress = (text: string): boolean => canonicalValue(text) !== undefined || text.includes(':');

function ipv4Kind(value: bigint): AddressKind {
  if (within(value, IPV4_LOOPBACK, IPV4_BITS)) return 'loopback';
  return IPV4_REFUSED.some((refused) => within(value, refused, IPV4_BITS)) ? 'refused' : 'public';
}

function canonicalValue(text: string): bigint | undefined {
  const v4 = ipv4Value(text);
  return v4 === undefined ? ipv6Value(text) : v4 | (0xffffn << BigInt(IPV4_BITS));
}
