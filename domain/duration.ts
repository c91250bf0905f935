/** ISO 8601 durations of a fixed length: weeks, days, hours, minutes and seconds. Years and months have none. */
export const DURATION_PATTERN =
  /^P(?=[0-9T])(?:([0-9]{1,5})W)?(?:([0-9]{1,5})D)?(?:T(?=[0-9])(?:([0-9]{1,6})H)?(?:([0-9]{1,8})M)?(?:([0-9]{1,9})(?:\.([0-9]{1,3}))?S)?)?$/;

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
const UNITS_MS = [WEEK_MS, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS];

/** @returns milliseconds, or undefined when the text is no such duration: `P1DT12H` is 129 600 000 */
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
