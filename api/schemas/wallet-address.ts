/** Ethereum addresses (EIP-55): the checksum in the case of the letters, and the address that a wallet gets. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import type { Wallet } from '../../domain/wallet.ts';

const ADDRESS_BYTES = 20;
/** A letter is a capital if the hash digit at its position is at least this. */
const CAPITAL_FROM = 8;

export const ADDRESS_PATTERN = /^0x[0-9a-fA-F]{40}$/;

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The address with its checksum. @param address in any case */
export function checksumAddress(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = hexOf(keccak_256(Buffer.from(digits)));
  const isCapital = (place: number): boolean => Number.parseInt(hash.charAt(place), 16) >= CAPITAL_FROM;
  return `0x${[...digits].map((digit, place) => (isCapital(place) ? digit.toUpperCase() : digit)).join('')}`;
}

/** An address in one case has no checksum. In mixed case the checksum must be right. */
export function hasValidChecksum(address: string): boolean {
  const digits = address.slice(2);
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || address === checksumAddress(address);
}

export const isZeroAddress = (address: string): boolean => /^0x0{40}$/.test(address);

/** The address of a wallet. The order, the case and the labels of the signers do not change it. */
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
