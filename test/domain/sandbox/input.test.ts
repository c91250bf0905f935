import { expect, test } from 'vitest';
import { isScreeningHit, sandboxReview } from '../../../domain/sandbox/input.ts';

test('screening finds a match only in a name that contains SANCTIONED', () => {
  expect([isScreeningHit('Marcia Brown'), isScreeningHit('Marcia SANCTIONED Brown')]).toEqual([false, true]);
});

test('the simulated identity provider decides only about a name that selects a decision', () => {
  expect(sandboxReview('Marcia Brown')).toBeUndefined();
  expect(sandboxReview('KYC REJECT Ltd')).toBe('RED');
  expect(sandboxReview('KYC APPROVE Ltd')).toBe('GREEN');
});
