/**
 * How much callers may request in a time window (contract §2). Each budget has a count of its own, so that one kind of
 * request does not use up another's. All of them follow from `RATE_LIMIT_PER_MINUTE`.
 */
import { type Allowance, requestsPerMinuteOf } from './quota.ts';

export const BUDGET_NAMES = [
  'default',
  'address',
  'sign-up',
  'sign-ups-of-network',
  'code-request',
  'one-time-code',
  'page',
  'failure',
] as const;
export type BudgetName = (typeof BUDGET_NAMES)[number];

/** `quota` units in each window of `windowSeconds`. */
export type Budget = { readonly name: BudgetName; readonly quota: number; readonly windowSeconds: number };

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 60 * MINUTE_SECONDS;
const QUOTA_MIN = 10;
/** What all organizations of one address may request together, in budgets of one. */
export const ORGANIZATIONS_OF_ADDRESS = 3;

/** Units of the budgets. A sign-up writes rows without a credential. A code costs nothing once it is proved. */
export const REQUEST_WEIGHTS = { signUp: 10, certificatePdf: 10, unprovedCode: 30, usage: 10 } as const;

const WEIGHED_BYTES = 64 * 1024;

/** The units that an answer costs in addition to its request. */
export const weightOf = (bytes: number): number => Math.floor(bytes / WEIGHED_BYTES);

/** @param perMinute requests of one organization, or of one address, in a minute */
export function budgetsOf(perMinute: number): Readonly<Record<BudgetName, Budget>> {
  const share = (divisor: number) => Math.max(QUOTA_MIN, Math.floor(perMinute / divisor));
  return {
    default: { name: 'default', quota: perMinute, windowSeconds: MINUTE_SECONDS },
    address: { name: 'address', quota: ORGANIZATIONS_OF_ADDRESS * perMinute, windowSeconds: MINUTE_SECONDS },
    'sign-up': { name: 'sign-up', quota: perMinute, windowSeconds: MINUTE_SECONDS },
    // Of an IPv4 /24 or an IPv6 /48: other addresses of one network are cheap.
    'sign-ups-of-network': { name: 'sign-ups-of-network', quota: share(3), windowSeconds: 24 * HOUR_SECONDS },
    'code-request': { name: 'code-request', quota: perMinute, windowSeconds: MINUTE_SECONDS },
    // Of codes that were given out. However small the budget is, it has one code.
    'one-time-code': {
      name: 'one-time-code',
      quota: Math.max(REQUEST_WEIGHTS.unprovedCode, share(2)),
      windowSeconds: HOUR_SECONDS,
    },
    page: { name: 'page', quota: perMinute, windowSeconds: MINUTE_SECONDS },
    failure: { name: 'failure', quota: share(20), windowSeconds: MINUTE_SECONDS },
  };
}

/** The budgets of a request with a key. An organization that may request more may do so from one address. */
export function budgetsOfOrganization(
  allowance: Allowance,
  perMinute: number,
): Readonly<Record<'default' | 'address', Budget>> {
  const own = budgetsOf(requestsPerMinuteOf(allowance, perMinute));
  const { address } = budgetsOf(perMinute);
  return { default: own.default, address: own.address.quota > address.quota ? own.address : address };
}

/**
 * Over a quota, this many units are refused at once. Later refusals are slow: a caller that repeats them gets little.
 */
const REFUSED_AT_ONCE = 100;
const SLOW_REFUSAL_MS = 500;

/** @returns milliseconds that the refusal of a request is held back, 0 for one within the quota */
export const refusalDelayMs = ({ quota }: Budget, { used }: Counted): number =>
  used > quota + REFUSED_AT_ONCE ? SLOW_REFUSAL_MS : 0;

/**
 * Whether a request that cost so much is within the quota. The first one of a window always is: a quota that is smaller
 * than the cost makes no operation impossible.
 */
export const isWithin = ({ quota }: Budget, { used }: Counted, cost: number): boolean => used <= Math.max(quota, cost);

/** A count after a request: how much of the window is used, and the seconds until the next window. */
export type Counted = { readonly used: number; readonly resetSeconds: number };
