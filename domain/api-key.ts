/**
 * An API key and its status (contract §3). `active`, `rotated` and `revoked` are stored. `expired` is computed from the
 * expiry of an active key, so that no job has to expire keys.
 */
import type { FieldFault } from './error.ts';
import { isBlockWithin, parseBlock } from './network-address.ts';
import type { EnvironmentName } from './runtime.ts';
import { type Scope, scopeCovers } from './scope.ts';

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
  /** The key that made it, by creation or rotation; null where no key did: at sign-up and by operators. */
  readonly createdBy: string | null;
};

/** What a key may do, until when and from where. It never changes. */
export type KeyLimits = Pick<ApiKey, 'scope' | 'expiresAt' | 'allowedCidrs'>;

/** How many characters of a raw key are stored with it (contract §3). */
export const KEY_PREFIX_LENGTH = 12;
export const API_KEY_NAME_LENGTH_MAX = 60;

/** Valid keys of one organization. Rotating a key does not change their number. */
export const ACTIVE_KEYS_MAX = 100;

/** Blocks of addresses that a key may be limited to. */
export const ALLOWED_CIDRS_MAX = 20;

/** The name of the key that is created with an organization. */
export const FIRST_KEY_NAME = 'First key';

/** Where a key would exceed the one that makes it (contract §3). Null is no limit. */
export function excessOf(wanted: KeyLimits, creator: KeyLimits): FieldFault[] {
  const { expiresAt: endsAt, allowedCidrs: allowed } = creator;
  const isBeyond = endsAt !== null && (wanted.expiresAt === null || wanted.expiresAt > endsAt);
  return [
    ...(scopeCovers(creator.scope, wanted.scope) ? [] : [{ field: 'scope', rule: 'exceeds your key' }]),
    ...(isBeyond ? [{ field: 'expires_at', rule: 'must not be after the expiry of your key' }] : []),
    ...(allowed === null
      ? []
      : (wanted.allowedCidrs ?? EVERYWHERE)
          .map((block, index) => ({ field: `allowed_cidrs.${index}`, isInside: isInside(block, allowed) }))
          .filter(({ isInside }) => !isInside)
          .map(({ field }) => ({ field, rule: 'must lie within one block of your key' }))),
  ];
}

/** A block of every address is no block that a key may have. */
const EVERYWHERE = ['*'];

function isInside(block: string, allowed: readonly string[]): boolean {
  const inner = parseBlock(block);
  return allowed.some((text) => {
    const outer = parseBlock(text);
    return inner !== undefined && outer !== undefined && isBlockWithin(inner, outer);
  });
}

export function apiKeyStatus(key: Pick<ApiKey, 'status' | 'expiresAt'>, now: Date): ApiKeyStatus {
  return key.status === 'active' && key.expiresAt !== null && key.expiresAt <= now ? 'expired' : key.status;
}
