/**
 * Access tokens of bank linking (contract §10): the account behind one is encrypted and authenticated for one
 * organization, so that nobody can read, change or borrow it, and nothing about it is stored.
 */
import type { Sealer } from '../db/seal.ts';

const PREFIX = 'access-sandbox-';
const binding = (orgId: string): string => `banklink.access_token:${orgId}`;

/** @param account the public token that names the simulated account */
export const sealAccessToken = (sealer: Sealer, orgId: string, account: string): string =>
  PREFIX + sealer.seal(account, binding(orgId));

/** The account behind a token; undefined when the token is not this organization's, or not as it was given out. */
export function openAccessToken(sealer: Sealer, orgId: string, token: string): string | undefined {
  return token.startsWith(PREFIX) ? sealer.open(token.slice(PREFIX.length), binding(orgId))?.toString() : undefined;
}
