/** What an organization used, by days in UTC (contract §14). */
import type { Currency } from './money.ts';
import { RETENTION } from './retention.ts';
import type { SettlementStatus } from './settlement/state.ts';
import type { VerificationStatus } from './verification.ts';
import type { DeliveryStatus } from './webhook.ts';

/** The most days of one answer. */
export const USAGE_DAYS_MAX = 92;

const DAY_MS = 24 * 60 * 60_000;

export const CREATED_KINDS = ['recipients', 'wallets', 'api_keys', 'webhooks'] as const;
export type CreatedKind = (typeof CREATED_KINDS)[number];

/** Counts of one day. Settlements, verifications and deliveries belong to the day on which they began. */
export type DayOfUsage = {
  /** `2026-11-21`. */
  readonly date: string;
  readonly settlements: Partial<Record<SettlementStatus, number>>;
  /** What the settlements that settled collected, in the source currency. */
  readonly volumeMinor: Partial<Record<Currency, bigint>>;
  readonly verifications: Partial<Record<VerificationStatus, number>>;
  /** Null if some of them may have been deleted since. */
  readonly deliveries: Partial<Record<DeliveryStatus, number>> | null;
  readonly created: Partial<Record<CreatedKind, number>>;
};

/** Both days are included. */
export type UsagePeriod = { readonly from: Date; readonly to: Date };

const dateOf = (moment: Date): string => moment.toISOString().slice(0, 10);

/** Whether a period, both ends included, has more days than one answer. */
export const isTooLong = ({ from, to }: UsagePeriod): boolean =>
  to.getTime() - from.getTime() >= USAGE_DAYS_MAX * DAY_MS;

/** For how many days deliveries are kept now, and the date of the oldest one that is left, of whichever organization. */
export type Keeping = { readonly days: number; readonly now: Date; readonly oldest: string | undefined };

/**
 * Whether the deliveries of a day are all kept still. They may have been kept for a shorter time before, but never for
 * less than the least.
 */
export function keepsDeliveries(date: string, { days, now, oldest }: Keeping): boolean {
  const isWithin = (most: number): boolean => Date.parse(date) >= now.getTime() - most * DAY_MS;
  return isWithin(RETENTION.events.daysMin) || (isWithin(days) && oldest !== undefined && date > oldest);
}

/** The dates of a period, in their order. */
export function datesOf({ from, to }: UsagePeriod): string[] {
  const dates: string[] = [];
  for (let atMs = from.getTime(); atMs <= to.getTime(); atMs += DAY_MS) dates.push(dateOf(new Date(atMs)));
  return dates;
}
