/**
 * An API key as its organization sees it (contract §3). `active`, `rotated` and `revoked` are stored; `expired` is
 * what an active key becomes when its time is over, so that nothing has to run for a key to expire.
 */
import type { EnvironmentName } from './runtime.ts';
import type { Scope } from './scope.ts';

export const API_KEY_STATUSES = ['active', 'rotated', 'revoked', 'expired'] as const;
export type ApiKeyStatus = (typeof API_KEY_STATUSES)[number];

export type ApiKey = {
  readonly keyId: string;
  readonly orgId: string;
  readonly name: string;
  readonly scope: Scope;
  readonly status: Exclude<ApiKeyStatus, 'expired'>;
  readonly environment: EnvironmentName;
  /** The first characters of the raw key, enough to recognise it by. */
  readonly prefix: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** The key that took its place. */
  readonly rotatedTo: string | null;
};

export const API_KEY_NAME_LENGTH_MAX = 60;

/** The name of the key that an organization is created with. */
export const FIRST_KEY_NAME = 'First key';

export function apiKeyStatus(key: Pick<ApiKey, 'status' | 'expiresAt'>, now: Date): ApiKeyStatus {
  return key.status === 'active' && key.expiresAt !== null && key.expiresAt <= now ? 'expired' : key.status;
}
