/**
 * How much an organization may hold and request (contract §2). Its tier has a limit of each name; an operator may give
 * the organization another one.
 */
import { ACTIVE_KEYS_MAX } from './api-key.ts';
import { DomainError } from './error.ts';
import type { RuntimeEnvironment } from './runtime.ts';
import { SUBSCRIPTIONS_MAX } from './webhook.ts';

export const QUOTA_KINDS = ['api_keys', 'recipients', 'verifications', 'wallets', 'webhooks'] as const;
export type QuotaKind = (typeof QUOTA_KINDS)[number];
/** Kinds whose objects never go. They are counted when they are created. */
export type CountedKind = Exclude<QuotaKind, 'api_keys' | 'webhooks'>;

export const LIMIT_NAMES = [...QUOTA_KINDS, 'requests_per_minute'] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];

/** Outside the local sandbox a new organization begins with the first one. */
export const TIERS = ['starter', 'standard', 'large'] as const;
export type Tier = (typeof TIERS)[number];

/** What an operator gave to one organization. */
export type OwnLimits = Readonly<Partial<Record<LimitName, number>>>;
export type Allowance = { readonly tier: Tier; readonly limits: OwnLimits };

export const TIER_QUOTAS: Readonly<Record<Tier, Readonly<Record<QuotaKind, number>>>> = {
  starter: { api_keys: 10, recipients: 1_000, verifications: 2_000, wallets: 50, webhooks: 5 },
  standard: {
    api_keys: ACTIVE_KEYS_MAX,
    recipients: 100_000,
    verifications: 200_000,
    wallets: 1_000,
    webhooks: SUBSCRIPTIONS_MAX,
  },
  large: {
    api_keys: ACTIVE_KEYS_MAX,
    recipients: 2_000_000,
    verifications: 4_000_000,
    wallets: 10_000,
    webhooks: SUBSCRIPTIONS_MAX,
  },
};

/** The share of `RATE_LIMIT_PER_MINUTE`. */
const TIER_RATES: Readonly<Record<Tier, number>> = { starter: 0.25, standard: 1, large: 5 };

export const quotaOf = ({ tier, limits }: Allowance, kind: QuotaKind): number =>
  limits[kind] ?? TIER_QUOTAS[tier][kind];

/** @param perMinute `RATE_LIMIT_PER_MINUTE` */
export const requestsPerMinuteOf = ({ tier, limits }: Allowance, perMinute: number): number =>
  limits.requests_per_minute ?? Math.max(1, Math.floor(perMinute * TIER_RATES[tier]));

export const firstTier = (runtime: RuntimeEnvironment): Tier => (runtime === 'local-sandbox' ? 'standard' : 'starter');

const WAYS_OUT: Readonly<Record<QuotaKind, string>> = {
  api_keys: 'Revoke a key that is not used.',
  recipients: 'Ask the operator of the service for more.',
  verifications: 'Ask the operator of the service for more.',
  wallets: 'Ask the operator of the service for more.',
  webhooks: 'Delete a subscription, or widen the event types of another.',
};

export const quotaExceeded = (kind: QuotaKind): DomainError =>
  new DomainError(
    'quota_exceeded',
    { quota: kind },
    `Your organization holds as many objects of this kind as its quota allows. ${WAYS_OUT[kind]}`,
  );

/** What an operator may give at most. All active keys and subscriptions of an organization are read at once. */
export const LIMITS_MAX: Readonly<Record<LimitName, number>> = {
  api_keys: ACTIVE_KEYS_MAX,
  recipients: 100_000_000,
  verifications: 100_000_000,
  wallets: 1_000_000,
  webhooks: SUBSCRIPTIONS_MAX,
  requests_per_minute: 1_000_000,
};

/** Every limit of an organization. */
export const limitsOf = (allowance: Allowance, perMinute: number): Readonly<Record<LimitName, number>> => ({
  ...TIER_QUOTAS[allowance.tier],
  ...allowance.limits,
  requests_per_minute: requestsPerMinuteOf(allowance, perMinute),
});

/** @throws DomainError `quota_exceeded` when an organization with so many objects has no room for another one */
export function requireRoom(allowance: Allowance, kind: QuotaKind, used: number): void {
  if (used >= quotaOf(allowance, kind)) throw quotaExceeded(kind);
}
