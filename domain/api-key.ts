/**
 * An API key and its status (contract §3). `active`, `rotated` and `revoked` are stored. `expired` is computed from the
 * expiry of an active key, so that no job has to expire keys.
 */
import type { EnvironmentName } from './runtime.ts';
import type { Scope } from './scope.ts';

export const API_KEY_STATUSES = ['active', 'rotated', 'revoked', 'expired'] as const;
type ApiKeyStatus = (typeof API_KEY_STATUSES)[number];

export type ApiKey = {
  readonly keyId: string;
  readonly orgId: string;
  readonly name: string;
  readonly scope: Scope;
  readonly status: Exclude<ApiKeyStatus, 'expired'>;
  readonly environment: EnvironmentName;
  /** The first characters of the raw key, by which a person recognises it. */
  readonly prefix: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  /** The network that it was last used from: IPv4 by /24, IPv6 by /48. */
  readonly lastUsedFrom: string | null;
  /** The blocks of addresses that it is valid from; null: every address. */
  readonly allowedCidrs: readonly string[] | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** The key that replaced it; null unless it was rotated. */
  readonly rotatedTo: string | null;
};

export const API_KEY_NAME_LENGTH_MAX = 60;

/** Valid keys of one organization. Rotating a key does not change their number. */
export const ACTIVE_KEYS_MAX = 100;

/** Blocks of addresses that a key may be limited to. */
export const ALLOWED_CIDRS_MAX = 20;

/** The name of the key that is created with an organization. */
export const FIRST_KEY_NAME = 'First key';

export function apiKeyStatus(key: Pick<ApiKey, 'status' | 'expiresAt'>, now: Date): ApiKeyStatus {
  return key.status === 'active' && key.expiresAt !== null && key.expiresAt <= now ? 'expired' : key.status;
}
