import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ATTEMPTS_MAX, hasFailedTooLong, nextInFlight, RETRY_DELAYS_MS, retryDelayMs } from '../../domain/webhook.ts';
import { property } from '../support/property.ts';

const HOUR_MS = 3_600_000;

describe('the schedule of retries', () => {
  test('has eight attempts over 27 hours, 35 minutes and 5 seconds', () => {
    expect(ATTEMPTS_MAX).toBe(8);
    expect(RETRY_DELAYS_MS.reduce((sum: number, delayMs) => sum + delayMs, 0)).toBe(27 * HOUR_MS + 35 * 60_000 + 5_000);
    expect(retryDelayMs(8, 0.5, null)).toBeUndefined();
    expect(retryDelayMs(8, 0.5, 60_000)).toBeUndefined();
  });

  const attempt = fc.integer({ min: 1, max: 7 });
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  property([attempt, random])('spreads each delay by up to a tenth in both directions', (n, r) => {
    const base = RETRY_DELAYS_MS[n - 1] ?? 0;
    const delay = retryDelayMs(n, r, null) ?? 0;
    expect(Math.abs(delay - base)).toBeLessThanOrEqual(base / 10);
  });

  property([attempt, random, fc.integer({ min: 0, max: 100 * HOUR_MS })])(
    'honours Retry-After between one delay and two, and never retries earlier than it asks',
    (n, r, asked) => {
      const base = RETRY_DELAYS_MS[n - 1] ?? 0;
      const delay = retryDelayMs(n, r, asked) ?? 0;
      expect(delay).toBeGreaterThanOrEqual(Math.min(2 * base, Math.max(base, asked)));
      expect(delay).toBeLessThanOrEqual(2 * base);
    },
  );

  test('five days of failures are too long, a millisecond less is not', () => {
    const since = new Date('2026-11-21T08:00:00.000Z');
    expect(hasFailedTooLong(null, since)).toBe(false);
    expect(hasFailedTooLong(since, new Date(since.getTime() + 5 * 24 * HOUR_MS - 1))).toBe(false);
    expect(hasFailedTooLong(since, new Date(since.getTime() + 5 * 24 * HOUR_MS))).toBe(true);
  });
});

describe('requests in flight', () => {
  property([fc.array(fc.record({ failed: fc.boolean(), durationMs: fc.integer({ min: 0, max: 15_000 }) }))])(
    'are at least one and at most 32, and a failure leaves one',
    (answers) => {
      let inFlight = 4;
      for (const answer of answers) {
        inFlight = nextInFlight(inFlight, answer);
        expect(inFlight).toBeGreaterThanOrEqual(1);
        expect(inFlight).toBeLessThanOrEqual(32);
        if (answer.failed) expect(inFlight).toBe(1);
      }
    },
  );

  test('grow by one with a fast answer, and shrink to four with slow ones', () => {
    expect(nextInFlight(4, { failed: false, durationMs: 500 })).toBe(5);
    expect(nextInFlight(32, { failed: false, durationMs: 80 })).toBe(32);
    expect(nextInFlight(6, { failed: false, durationMs: 501 })).toBe(5);
    expect(nextInFlight(4, { failed: false, durationMs: 3_000 })).toBe(4);
    expect(nextInFlight(1, { failed: false, durationMs: 3_000 })).toBe(1);
  });
});
