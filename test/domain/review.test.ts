import { describe, expect, test } from 'vitest';
import { resolutionFault } from '../../domain/review.ts';

const RIGHT = { outcome: 'paid', operator: 'pat', note: 'The bank confirmed it by phone.' };

describe("an operator's resolution", () => {
  test.each([
    undefined,
    {},
    { ...RIGHT, outcome: 'settled' },
    { ...RIGHT, outcome: undefined },
    { ...RIGHT, outcome: 'Paid' },
  ])('needs an outcome that there is: %j', (given) => {
    expect(resolutionFault(given)).toContain('outcome');
  });

  test.each(['', '   ', 'x'.repeat(65), 'a\nb', 'a\u0000', 'a\u0085b', '\ud800', 7, null, undefined])(
    'needs an operator in one line of 1 to 64 characters, not %j',
    (operator) => {
      expect(resolutionFault({ ...RIGHT, operator })).toContain('operator');
    },
  );

  test.each(['', ' ', 'x'.repeat(501), 'line\nline', 'tab\there', {}, undefined])(
    'needs a note in one line of 1 to 500 characters, not %j',
    (note) => {
      expect(resolutionFault({ ...RIGHT, note })).toContain('note');
    },
  );

  test.each([RIGHT, { ...RIGHT, outcome: 'refused', operator: 'x'.repeat(64), note: 'ñ'.repeat(500) }])(
    'is one: %j',
    (given) => {
      expect(resolutionFault(given)).toBeUndefined();
    },
  );
});
