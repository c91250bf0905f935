/** What an organization used, as the API shows it (contract §14). */
import { formatMoney, isCurrency } from '../money.ts';
import { SETTLEMENT_STATUSES } from '../settlement/state.ts';
import { CREATED_KINDS, type DayOfUsage } from '../usage.ts';
import { VERIFICATION_STATUSES } from '../verification.ts';
import { DELIVERY_STATUSES } from '../webhook.ts';

/** The fields of UsageResponse. */
export const usageResource = (days: readonly DayOfUsage[]) => ({
  days: days.map(({ date, settlements, volumeMinor, verifications, deliveries, created }) => ({
    date,
    settlements: allOf(SETTLEMENT_STATUSES, settlements),
    volume: Object.entries(volumeMinor).flatMap(([currency, minor]) =>
      isCurrency(currency) ? [{ currency, amount: formatMoney(minor, currency) }] : [],
    ),
    verifications: allOf(VERIFICATION_STATUSES, verifications),
    deliveries: deliveries && allOf(DELIVERY_STATUSES, deliveries),
    created: allOf(CREATED_KINDS, created),
  })),
});

/** Every count, 0 included, so that a table has the same columns each day. */
const allOf = <Name extends string>(names: readonly Name[], counts: Partial<Record<Name, number>>) =>
  Object.fromEntries(names.map((name) => [name, counts[name] ?? 0])) as Record<Name, number>;
