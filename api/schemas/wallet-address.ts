/** Ethereum addresses (EIP-55): the checksum in the case of the letters, and the address that a wallet's definition determines. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import type { Wallet } from '../../domain/wallet.ts';

const ADDRESS_BYTES = 20;
/** A digit of the hash from which on the letter at its place is a capital. */
const CAPITAL_FROM = 8;

export const ADDRESS_PATTERN = /^0x[0-9a-fA-F]{40}$/;

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The address with its checksum; takes any case. */
export function checksumAddress(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = hexOf(keccak_256(Buffer.from(digits)));
  return `0x${[...digits].map((digit, place) => (Number.parseInt(hash.charAt(place), 16) >= CAPITAL_FROM ? digit.toUpperCase() : digit)).join('')}`;
}

/** One case alone carries no checksum; both do, and it must be right. */
export function hasRightChecksum(address: string): boolean {
  const digits = address.slice(2);
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || address === checksumAddress(address);
}

export const isZeroAddress = (address: string): boolean => /^0x0{40}$/.test(address);

/** Neither the signers' order nor the spelling of their addresses nor their labels matter. */
export function walletAddressOf({
  orgId,
  network,
  threshold,
  name,
  signers,
}: Omit<Wallet, 'walletId' | 'address' | 'createdAt'>): string {
  const sorted = signers.map(({ address }) => address.toLowerCase()).sort();
  const definition = JSON.stringify(['wallet/v1', orgId, network, threshold, name, sorted]);
  return checksumAddress(`0x${hexOf(keccak_256(Buffer.from(definition)).slice(-ADDRESS_BYTES))}`);
}
