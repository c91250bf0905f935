/** ISO 8601 durations of a fixed length: weeks, days, hours, minutes and seconds. Years and months have none. */
const DATE_PART = /(?:([0-9]{1,5})W)?(?:([0-9]{1,5})D)?/;
const TIME_PART = /(?:T(?=[0-9])(?:([0-9]{1,6})H)?(?:([0-9]{1,8})M)?(?:([0-9]{1,9})(?:\.([0-9]{1,3}))?S)?)?/;
const DURATION_PATTERN = new RegExp(`^P(?=[0-9T])${DATE_PART.source}${TIME_PART.source}$`);

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
const UNITS_MS = [WEEK_MS, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS];

/** @returns milliseconds, `P1DT12H` as 129 600 000; undefined when the text is not such a duration */
export function parseDuration(text: string): number | undefined {
  const match = DURATION_PATTERN.exec(text);
  if (!match) return undefined;
  const [, weeks, days, hours, minutes, seconds, fraction = ''] = match;
  const wholeMs = [weeks, days, hours, minutes, seconds].reduce(
    (sum, digits, unit) => sum + Number(digits ?? 0) * (UNITS_MS[unit] ?? 0),
    0,
  );
  return wholeMs + Number(fraction.padEnd(3, '0'));
}
