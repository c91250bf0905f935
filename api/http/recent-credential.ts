/**
 * Credentials that were valid in the last minutes, each with the address that it came from. When that address is
 * refused for too many failures, these are looked up all the same: the failures are another caller's (contract §2).
 */
import { createHash } from 'node:crypto';

const REMEMBERED_MS = 15 * 60_000;
/** Credentials that are remembered at once. Beyond this number the oldest are forgotten. */
const CREDENTIALS_MAX = 50_000;

export type RecentCredentials = {
  add(credential: string): void;
  delete(credential: string): void;
  has(credential: string): boolean;
};

/** What stands for a credential in memory: a digest, since the credential itself is secret. */
export const credentialDigest = (address: string, lines: readonly string[]): string =>
  createHash('sha256')
    .update([address, ...lines].join('\n'))
    .digest('base64');

export function createRecentCredentials(): RecentCredentials {
  const endsAtMs = new Map<string, number>();
  return {
    add(credential) {
      // Set anew, so that the first of the map is the one that was valid longest ago.
      endsAtMs.delete(credential);
      endsAtMs.set(credential, performance.now() + REMEMBERED_MS);
      const [oldest] = endsAtMs.keys();
      if (oldest !== undefined && endsAtMs.size > CREDENTIALS_MAX) endsAtMs.delete(oldest);
    },
    delete: (credential) => void endsAtMs.delete(credential),
    has: (credential) => (endsAtMs.get(credential) ?? 0) > performance.now(),
  };
}
