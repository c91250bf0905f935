import { describe, expect, test } from 'vitest';
import { isValidAt, type ReviewRequest, requestAfter } from '../../domain/review.ts';

const AT = new Date('2026-11-21T08:00:00.000Z');
const DAY_MS = 86_400_000;
const by = (operator: string, outcome: 'paid' | 'refused' = 'paid', at = AT) => ({ operator, outcome, at });

const ofAna: ReviewRequest = requestAfter(undefined, by('ana'), 'production');

describe('a request to resolve a review', () => {
  test('is agreed at once in the local sandbox', () => {
    expect(requestAfter(undefined, by('ana'), 'local-sandbox')).toEqual({
      outcome: 'paid',
      requestedBy: 'ana',
      requestedAt: AT,
      confirmedBy: null,
      agreedAt: AT,
    });
  });

  test.each(['remote-sandbox', 'production'] as const)('waits for a second operator in %s', (runtime) => {
    const requested = requestAfter(undefined, by('ana'), runtime);
    expect(requested).toMatchObject({ requestedBy: 'ana', confirmedBy: null, agreedAt: null });
    expect(requestAfter(requested, by('ana'), runtime)).toBe(requested);
    const inTime = new Date(AT.getTime() + DAY_MS - 1);
    expect(requestAfter(requested, by('ben', 'paid', inTime), runtime)).toEqual({
      outcome: 'paid',
      requestedBy: 'ana',
      requestedAt: AT,
      confirmedBy: 'ben',
      agreedAt: inTime,
    });
  });

  test('replaces the earlier one if its outcome is another, and confirms nothing', () => {
    const replaced = requestAfter(ofAna, by('ben', 'refused'), 'production');
    expect(replaced).toMatchObject({ outcome: 'refused', requestedBy: 'ben', agreedAt: null });
    expect(requestAfter(replaced, by('ana', 'refused'), 'production')).toMatchObject({
      confirmedBy: 'ana',
      agreedAt: AT,
    });
  });

  test('is not confirmed a day later: it is asked for again', () => {
    const later = new Date(AT.getTime() + DAY_MS);
    expect(requestAfter(ofAna, by('ben', 'paid', later), 'production')).toMatchObject({
      requestedBy: 'ben',
      agreedAt: null,
    });
  });

  test('stays as it is once it is agreed', () => {
    const agreed = requestAfter(ofAna, by('ben'), 'production');
    expect(requestAfter(agreed, by('eve', 'refused'), 'production')).toBe(agreed);
    expect([ofAna, agreed].map((request) => isValidAt(request, new Date(AT.getTime() + DAY_MS)))).toEqual([
      false,
      true,
    ]);
  });
});
