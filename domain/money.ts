/**
 * Money is a bigint count of minor units; its text form is a decimal string in major units (contract §1).
 * Rates are bigint millionths. Nothing here rounds silently: every division names its direction.
 */
export const CURRENCIES = [
  'USD',
  'CAD',
  'GBP',
  'JMD',
  'TTD',
  'BBD',
  'BSD',
  'DOP',
  'HTG',
  'GYD',
  'KYD',
  'BZD',
  'XCD',
] as const;
export type Currency = (typeof CURRENCIES)[number];

/** Minor digits by ISO 4217. A test compares the table with a library's. */
export const MINOR_DIGITS: Record<Currency, number> = {
  USD: 2,
  CAD: 2,
  GBP: 2,
  JMD: 2,
  TTD: 2,
  BBD: 2,
  BSD: 2,
  DOP: 2,
  HTG: 2,
  GYD: 2,
  KYD: 2,
  BZD: 2,
  XCD: 2,
};

/** Length of the longest amount that is parsed. The bounds of every operation are far below it. */
export const MONEY_TEXT_LENGTH_MAX = 20;

/** No sign, exponent, leading zero or grouping; trailing zeros may be missing (contract §1). */
export const MONEY_PATTERN = /^(0|[1-9][0-9]{0,14})(\.[0-9]{1,4})?$/;

export const isCurrency = (code: string): code is Currency => (CURRENCIES as readonly string[]).includes(code);

/**
 * Reads a decimal string in major units.
 *
 * @returns minor units, or undefined when the text is not a valid amount in that currency (`"1.005"` in USD)
 */
export function parseMoney(text: string, currency: Currency): bigint | undefined {
  if (text.length > MONEY_TEXT_LENGTH_MAX || !MONEY_PATTERN.test(text)) return undefined;
  const [major = '', fraction = ''] = text.split('.');
  const digits = MINOR_DIGITS[currency];
  if (fraction.length > digits) return undefined;
  return BigInt(major + fraction.padEnd(digits, '0'));
}

/** Writes minor units as a decimal string with exactly the currency's minor digits, `25000n` USD as `"250.00"`. */
export function formatMoney(amountMinor: bigint, currency: Currency): string {
  const digits = MINOR_DIGITS[currency];
  const sign = amountMinor < 0n ? '-' : '';
  const text = (amountMinor < 0n ? -amountMinor : amountMinor).toString().padStart(digits + 1, '0');
  return digits === 0 ? sign + text : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** `numerator / denominator` rounded half up; both non-negative, the denominator positive. */
export function divideHalfUp(numerator: bigint, denominator: bigint): bigint {
  return (numerator * 2n + denominator) / (denominator * 2n);
}

const RATE_SCALE = 1_000_000n;

const RATE_PATTERN = /^(0|[1-9][0-9]{0,8})\.[0-9]{6}$/;

/**
 * Reads a rate of exactly six decimals as millionths, `"157.250000"` as `157250000n`.
 *
 * @throws RangeError for any other text. Rates are constants of this code, so an invalid one is a bug
 */
export function parseRate(text: string): bigint {
  if (!RATE_PATTERN.test(text)) throw new RangeError(`invalid rate, six decimals expected: ${text}`);
  return BigInt(text.replace('.', ''));
}

/** Writes millionths with exactly six decimals, `157250000n` as `"157.250000"`. */
export function formatRate(rateMillionths: bigint): string {
  const text = rateMillionths.toString().padStart(7, '0');
  return `${text.slice(0, -6)}.${text.slice(-6)}`;
}

/** Converts minor units by a rate in millionths, rounded down to the minor unit of the destination (contract §5). */
export function convertDown(amountMinor: bigint, from: Currency, to: Currency, rateMillionths: bigint): bigint {
  const scaled = amountMinor * rateMillionths * 10n ** BigInt(MINOR_DIGITS[to]);
  return scaled / (RATE_SCALE * 10n ** BigInt(MINOR_DIGITS[from]));
}

/** The smaller of two amounts. */
export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
