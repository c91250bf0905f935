/**
 * Access tokens of bank linking (contract §10). A token is the linked account, sealed for one organization. So nobody
 * can read or change it, no other organization can use it, and nothing about it is stored.
 */
import type { Sealer } from './seal.ts';

const PREFIX = 'access-sandbox-';
const binding = (orgId: string): string => `banklink.access_token:${orgId}`;

/** @param account the public token that names the simulated account */
export const sealAccessToken = (sealer: Sealer, orgId: string, account: string): string =>
  PREFIX + sealer.seal(account, binding(orgId));

/** The account behind a token; undefined for another organization's token and for an altered one. */
export function openAccessToken(sealer: Sealer, orgId: string, token: string): string | undefined {
  return token.startsWith(PREFIX) ? sealer.tryOpen(token.slice(PREFIX.length), binding(orgId))?.toString() : undefined;
}
