/** What an organization used, by days in UTC (contract §14). */
import type { Currency } from './money.ts';
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
  readonly deliveries: Partial<Record<DeliveryStatus, number>>;
  readonly created: Partial<Record<CreatedKind, number>>;
};

/** Both days are included. */
export type UsagePeriod = { readonly from: Date; readonly to: Date };

const dateOf = (moment: Date): string => moment.toISOString().slice(0, 10);

/** How many days a period has, both ends included. */
export const daysOf = ({ from, to }: UsagePeriod): number => Math.round((to.getTime() - from.getTime()) / DAY_MS) + 1;

/** The first moment after the period. */
export const endOf = ({ to }: UsagePeriod): Date => new Date(to.getTime() + DAY_MS);

/** The dates of a period, in their order. */
export const datesOf = (period: UsagePeriod): string[] =>
  Array.from({ length: daysOf(period) }, (_, day) => dateOf(new Date(period.from.getTime() + day * DAY_MS)));
