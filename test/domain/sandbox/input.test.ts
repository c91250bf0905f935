import { expect, test } from 'vitest';
import { sandboxReview } from '../../../domain/sandbox/input.ts';

test('the simulated identity provider decides only about a name that selects a decision', () => {
  expect(sandboxReview('Marcia Brown')).toBeUndefined();
  expect(sandboxReview('KYC REJECT Ltd')).toBe('RED');
  expect(sandboxReview('KYC APPROVE Ltd')).toBe('GREEN');
});
