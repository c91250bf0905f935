/** How long data is kept that only grows and is read by age. Settlements, the journal, certificates and keys stay. */

/**
 * Events, their deliveries and attempts are kept for at least `daysMin` days (contract §11), and quotes, which are
 * valid for 30 seconds, for a day. The database refuses to delete younger ones.
 */
export const RETENTION = {
  events: { daysMin: 90, daysMax: 36_500, daysDefault: 90 },
  quotes: { daysMin: 1, daysMax: 36_500, daysDefault: 90 },
} as const;

/** For how many days each is kept. */
export type RetentionDays = Readonly<Record<keyof typeof RETENTION, number>>;

/** How many deliveries one transaction deletes at most. */
export const DELIVERIES_DELETED_MAX = 2_000;

/** The tables that lie in months have partitions for so many months after this one. */
export const PARTITIONS_AHEAD = 3;
