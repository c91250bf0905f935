import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseDuration } from '../../domain/duration.ts';
import { property } from '../support/property.ts';

describe('an ISO 8601 duration', () => {
  test.each([
    '',
    'P',
    'PT',
    'P1DT',
    '1D',
    'P-1D',
    '-P1D',
    'P1.5D',
    'PT1.5H',
    'PT1,5S',
    'PT.5S',
    'PT1.S',
    'p1d',
    'P1D ',
    'P1H',
    'PT1D',
    'P1D1W',
    'PT1S1M',
    'P123456D',
  ])('%j is invalid', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test.each(['P1Y', 'P1M', 'P1Y2M3D'])('%s is refused: years and months have no fixed length', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });

  test.each([
    ['PT0S', 0],
    ['PT0.001S', 1],
    ['PT0.5S', 500],
    ['PT30M', 1_800_000],
    ['PT36H', 129_600_000],
    ['P1DT12H', 129_600_000],
    ['P2W', 1_209_600_000],
    ['P10D', 864_000_000],
    ['P1W1DT1H1M1.001S', 694_861_001],
  ])('%s is %d milliseconds', (text, durationMs) => {
    expect(parseDuration(text)).toBe(durationMs);
  });

  property([fc.nat(999), fc.nat(99_999), fc.nat(999), fc.nat(999_999), fc.nat(999)])(
    'is the sum of its parts, to the millisecond',
    (days, hours, minutes, seconds, fraction) => {
      const text = `P${days}DT${hours}H${minutes}M${seconds}.${String(fraction).padStart(3, '0')}S`;
      expect(parseDuration(text)).toBe((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + fraction);
    },
  );
});
