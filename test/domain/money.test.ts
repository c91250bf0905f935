import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as iso4217 from 'dinero.js/bigint/currencies';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  CURRENCIES,
  type Currency,
  convertDown,
  divideHalfUp,
  formatMoney,
  formatRate,
  MINOR_DIGITS,
  MONEY_TEXT_LENGTH_MAX,
  parseMoney,
  parseRate,
} from '../../domain/money.ts';
import { property } from '../support/property.ts';
import { words } from '../support/words.ts';

const currency = fc.constantFrom(...CURRENCIES);
const minorUnits = fc.bigInt({ min: 0n, max: 10n ** 17n - 1n });
/** Any text, and text that is almost an amount. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme-composite' }),
  fc.string({ unit: fc.constantFrom(...'0123456789.,+-eE'), maxLength: 8 }),
);
const rate = fc.bigInt({ min: 1n, max: 999_999_999n });

describe('refused as an amount', () => {
  test.each([
    ['nothing', ''],
    ['a blank', ' '],
    ['a leading blank', ' 1.00'],
    ['a trailing blank', '1.00 '],
    ['a trailing line break', '1.00\n'],
    ['a minus sign', '-1.00'],
    ['a plus sign', '+1.00'],
    ['a Unicode minus sign', '\u22121.00'],
    ['an exponent', '1e2'],
    ['an upper-case exponent', '1E2'],
    ['an exponent that overflows a float', '1e400'],
    ['not a number', 'NaN'],
    ['infinity', 'Infinity'],
    ['a hexadecimal number', '0x10'],
    ['a bigint literal', '10n'],
    ['a digit separator of JavaScript', '1_000'],
    ['a leading zero', '01.00'],
    ['two leading zeros', '00'],
    ['grouping by comma', '1,000.00'],
    ['grouping by blank', '1 000.00'],
    ['a decimal comma', '1,00'],
    ['two points', '1.0.0'],
    ['nothing before the point', '.50'],
    ['nothing after the point', '1.'],
    ['the point alone', '.'],
    ['three decimals of a currency with two', '1.005'],
    ['a float as JSON writes it', '0.30000000000000004'],
    ['three decimals that are zeros', '1.000'],
    ['full-width digits', '\uff11\uff12.\uff10\uff10'],
    ['Arabic-Indic digits', '\u0661\u0662'],
    ['a NUL inside', '1\u00000'],
    ['a currency sign', '$1.00'],
    ['sixteen digits before the point', '1000000000000000'],
    ['a very long text', '9'.repeat(MONEY_TEXT_LENGTH_MAX + 1)],
  ])('%s', (_name, text) => {
    for (const code of CURRENCIES) expect(parseMoney(text, code)).toBeUndefined();
  });

  property([anyText, currency])('any text that does not match the grammar', (text, code) => {
    const isAmount = /^(?:0|[1-9]\d{0,14})(?:\.\d{1,2})?$/.test(text);
    expect(parseMoney(text, code) !== undefined).toBe(isAmount);
  });

  property([minorUnits, fc.integer({ min: 1, max: 6 }), currency])(
    'more decimals than the currency has',
    (amountMinor, extra, code) => {
      expect(parseMoney(formatMoney(amountMinor, code) + '0'.repeat(extra), code)).toBeUndefined();
    },
  );

  test.each(['1', '1.0', '157.25', '157.2500000', '-1.000000', '01.000000', '1e2', '', '1,000000'])(
    'the rate %j, by a RangeError',
    (text) => {
      expect(() => parseRate(text)).toThrow(RangeError);
    },
  );
});

describe('an amount', () => {
  test.each([
    ['250', 25_000n, '250.00'],
    ['250.5', 25_050n, '250.50'],
    ['250.50', 25_050n, '250.50'],
    ['0', 0n, '0.00'],
    ['0.01', 1n, '0.01'],
    ['999999999999999.99', 99_999_999_999_999_999n, '999999999999999.99'],
  ])('%s is %s minor units and is written %s', (text, amountMinor, written) => {
    expect(parseMoney(text, 'USD')).toBe(amountMinor);
    expect(formatMoney(amountMinor, 'USD')).toBe(written);
  });

  property([minorUnits, currency])(
    'is parsed as it was written, even beyond the precision of a float',
    (amountMinor, code) => {
      expect(parseMoney(formatMoney(amountMinor, code), code)).toBe(amountMinor);
    },
  );

  property([minorUnits, currency])('may omit the trailing zeros of its fraction', (amountMinor, code) => {
    const shortened = formatMoney(amountMinor, code)
      .replace(/(\.\d*?)0+$/, '$1')
      .replace(/\.$/, '');
    expect(parseMoney(shortened, code)).toBe(amountMinor);
  });

  property([minorUnits, currency])('of the journal is written with its sign', (amountMinor, code) => {
    fc.pre(amountMinor > 0n);
    expect(formatMoney(-amountMinor, code)).toBe(`-${formatMoney(amountMinor, code)}`);
  });
});

describe('a rate', () => {
  property([fc.bigInt({ min: 0n, max: 999_999_999_999_999n })])('is parsed as it was written', (rateMillionths) => {
    expect(parseRate(formatRate(rateMillionths))).toBe(rateMillionths);
  });

  test('is written with six decimals', () => {
    expect(formatRate(820_000n)).toBe('0.820000');
    expect(formatRate(157_250_000n)).toBe('157.250000');
  });
});

describe('rounding a quotient', () => {
  property([fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.bigInt({ min: 1n, max: 10n ** 12n })])(
    'half up takes the nearest integer, and of two the upper one',
    (numerator, denominator) => {
      const twiceTheError = 2n * (divideHalfUp(numerator, denominator) * denominator - numerator);
      expect(twiceTheError > -denominator && twiceTheError <= denominator).toBe(true);
    },
  );

  property([minorUnits, currency, currency, rate])(
    'a conversion never gives more than the exact value, nor a whole minor unit less',
    (amountMinor, from, to, rateMillionths) => {
      const converted = convertDown(amountMinor, from, to, rateMillionths);
      const exact = amountMinor * rateMillionths * 10n ** BigInt(MINOR_DIGITS[to]);
      const unit = 1_000_000n * 10n ** BigInt(MINOR_DIGITS[from]);
      expect(converted * unit <= exact && exact < (converted + 1n) * unit).toBe(true);
    },
  );

  test('a conversion at a rate of one is the amount', () => {
    expect(convertDown(12_345n, 'USD', 'BSD', parseRate('1.000000'))).toBe(12_345n);
  });
});

describe('the table of currencies', () => {
  const published: Record<string, { readonly exponent: bigint } | undefined> = iso4217;

  test.each(CURRENCIES.map((code) => [code, MINOR_DIGITS[code]] as const))(
    '%s has the %i minor digits of ISO 4217',
    (code, digits) => {
      expect(published[code]?.exponent).toBe(BigInt(digits));
    },
  );

  test('has only codes of ISO 4217', () => {
    expect(Object.keys(published)).toEqual(expect.arrayContaining([...CURRENCIES]));
  });

  test('holds each code once', () => {
    expect(new Set<Currency>(CURRENCIES).size).toBe(CURRENCIES.length);
  });
});

describe('no floating point', () => {
  const directory = path.resolve(import.meta.dirname, '../../domain');
  const moneyFiles = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && /Money|Minor|Millionths/.test(readFileSync(path.join(directory, file), 'utf8')),
  );
  /** Code that could turn an amount into a float, after strings, patterns and comments were removed. */
  const floating = /\bNumber\b|\bparseFloat\b|\bparseInt\b|\bMath\b|\.toFixed\b|\d\.\d|[^A-Za-z]\+[A-Za-z(]/;

  /** Of a template, only its expressions are kept. */
  const withoutText = (source: string): string =>
    source
      .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
      .replace(/`(?:\\.|[^`])*`/g, (template) =>
        [...template.matchAll(/\$\{([^}]*)\}/g)].map(([, computed]) => computed).join(', '),
      )
      .replace(/'(?:[^'\\\n]|\\.)*'|\/(?:[^/\\\n]|\\.)+\/[a-z]*/g, "''");

  test('finds the files that handle money', () => {
    expect(moneyFiles).toEqual(
      expect.arrayContaining(
        words(`
        money.ts fee.ts pricing.ts settlement/posting.ts settlement/evidence.ts resource/settlement.ts
        sandbox/event.ts
      `),
      ),
    );
  });

  test.each(moneyFiles)('is used for money in %s', (file) => {
    const code = withoutText(readFileSync(path.join(directory, file), 'utf8'));
    expect(code.split('\n').filter((line) => floating.test(line))).toEqual([]);
  });
});
