/**
 * Network addresses and blocks of them. Addresses are compared as numbers, because one address has several spellings.
 */

export const IPV4_BITS = 32;
export const IPV6_BITS = 128;
const GROUPS = 8;

/** What an address is, however it was written. `::ffff:a.b.c.d` is the IPv4 address. */
export type NetworkAddress = { readonly value: bigint; readonly bits: typeof IPV4_BITS | typeof IPV6_BITS };

/** The bits before a mapped IPv4 address, `::ffff:a.b.c.d`. */
const MAPPED_PREFIX = 0xffffn;
const IPV4_MASK = 0xffff_ffffn;

/** @returns undefined for a text that is no address; a zone (`fe80::1%eth0`) is ignored */
export function parseAddress(text: string): NetworkAddress | undefined {
  const v4 = ipv4Value(text);
  if (v4 !== undefined) return { value: v4, bits: IPV4_BITS };
  const value = ipv6Value(text.replace(/%[^%]*$/, ''));
  if (value === undefined) return undefined;
  const isMapped = value >> BigInt(IPV4_BITS) === MAPPED_PREFIX;
  return isMapped ? { value: value & IPV4_MASK, bits: IPV4_BITS } : { value, bits: IPV6_BITS };
}

/** As `parseAddress`, also with a port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
export function parseHop(text: string): NetworkAddress | undefined {
  const [, v4, v6] = /^(?:([0-9.]+):[0-9]{1,5}|\[([^\]]+)\](?::[0-9]{1,5})?)$/.exec(text) ?? [];
  return parseAddress(v4 ?? v6 ?? text);
}

/** An address, or a block as `10.0.0.0/8`. */
export type AddressBlock = Pick<NetworkAddress, 'bits'> & { readonly base: bigint; readonly prefix: number };

/** @returns undefined for a text that is neither, and for a block that has every address */
export function parseBlock(text: string): AddressBlock | undefined {
  const [, given = '', length] = /^([^/]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? [];
  const address = given.includes('%') ? undefined : parseAddress(given);
  if (!address) return undefined;
  // A block of mapped addresses is the block of their IPv4 addresses.
  const spare = address.bits === IPV4_BITS && given.includes(':') ? IPV6_BITS - IPV4_BITS : 0;
  const prefix = length === undefined ? address.bits : Number(length) - spare;
  return prefix < 1 || prefix > address.bits ? undefined : { base: address.value, prefix, bits: address.bits };
}

/** The block of one address. */
export const blockOf = ({ value, bits }: NetworkAddress): AddressBlock => ({ base: value, prefix: bits, bits });

export function isInBlock({ value, bits }: NetworkAddress, block: AddressBlock): boolean {
  const shift = BigInt(bits - block.prefix);
  return bits === block.bits && value >> shift === block.base >> shift;
}

/** Whether every address of the inner block is in the outer one. */
export const isBlockWithin = (inner: AddressBlock, outer: AddressBlock): boolean =>
  inner.prefix >= outer.prefix && isInBlock({ value: inner.base, bits: inner.bits }, outer);

/** A block as text. Two texts of one block become the same: `10.1.2.3/8` and `::ffff:10.0.0.0/104` are `10.0.0.0/8`. */
export const blockText = ({ base, prefix, bits }: AddressBlock): string =>
  `${truncatedAddress({ value: base, bits }, { ipv4: prefix, ipv6: prefix })}/${prefix}`;

/**
 * The first bits of an address as text, such as `192.0.2.0` for 24 bits of an IPv4 address. The bits after them are 0.
 *
 * @param prefixes how many bits are kept of each kind
 */
export function truncatedAddress(
  { value, bits }: NetworkAddress,
  prefixes: { readonly ipv4: number; readonly ipv6: number },
): string {
  const cleared = BigInt(bits - (bits === IPV4_BITS ? prefixes.ipv4 : prefixes.ipv6));
  const kept = (value >> cleared) << cleared;
  const size = bits === IPV4_BITS ? 8n : 16n;
  const parts = Array.from(
    { length: bits / Number(size) },
    (_, index) => (kept >> (BigInt(bits) - size * BigInt(index + 1))) & ((1n << size) - 1n),
  );
  if (bits === IPV4_BITS) return parts.join('.');
  return parts
    .map((part) => part.toString(16))
    .join(':')
    .replace(/(:0)+$/, '::');
}

/** Four decimal octets without leading zeros: what resolvers and sockets write. */
function ipv4Value(text: string): bigint | undefined {
  const octets = text.split('.');
  if (octets.length !== 4 || !octets.every((octet) => /^(0|[1-9][0-9]{0,2})$/.test(octet) && Number(octet) <= 255))
    return undefined;
  return octets.reduce((value, octet) => (value << 8n) | BigInt(octet), 0n);
}

/** RFC 4291 text, with or without an IPv4 tail, without a zone. */
function ipv6Value(text: string): bigint | undefined {
  const tail = text.slice(text.lastIndexOf(':') + 1);
  const v4 = tail.includes('.') ? ipv4Value(tail) : undefined;
  if (tail.includes('.') && v4 === undefined) return undefined;
  const groups =
    v4 === undefined
      ? text
      : `${text.slice(0, -tail.length)}${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`;
  const halves = groups.split('::');
  if (halves.length > 2 || !groups.includes(':')) return undefined;
  const [head = [], rest = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const missing = GROUPS - head.length - rest.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const all = [...head, ...Array.from({ length: missing }, () => '0'), ...rest];
  if (!all.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return all.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}
