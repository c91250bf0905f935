import { describe, expect, test } from 'vitest';
import { resolutionFault } from '../../domain/review.ts';

const VALID = { outcome: 'paid', operator: 'pat', note: 'The bank confirmed it by phone.' };

describe("an operator's resolution", () => {
  test.each([
    undefined,
    {},
    { ...VALID, outcome: 'settled' },
    { ...VALID, outcome: undefined },
    { ...VALID, outcome: 'Paid' },
  ])('needs a known outcome: %j', (given) => {
    expect(resolutionFault(given)).toContain('outcome');
  });

  test.each(['', '   ', 'x'.repeat(65), 'a\nb', 'a\u0000', 'a\u0085b', '\ud800', 7, null, undefined])(
    'needs an operator in one line of 1 to 64 characters, not %j',
    (operator) => {
      expect(resolutionFault({ ...VALID, operator })).toContain('operator');
    },
  );

  test.each(['', ' ', 'x'.repeat(501), 'line\nline', 'tab\there', {}, undefined])(
    'needs a note in one line of 1 to 500 characters, not %j',
    (note) => {
      expect(resolutionFault({ ...VALID, note })).toContain('note');
    },
  );

  test.each([VALID, { ...VALID, outcome: 'refused', operator: 'x'.repeat(64), note: 'ñ'.repeat(500) }])(
    'is valid: %j',
    (given) => {
      expect(resolutionFault(given)).toBeUndefined();
    },
  );
});
