import { describe, expect, test } from 'vitest';
import { DomainError, ERROR_CODES, ERROR_TEXT, requireNoFaults, ValidationError } from '../../domain/error.ts';

describe('the list of refusals', () => {
  test.each(ERROR_CODES)('describes %s in whole sentences, under a title of its own', (code) => {
    const { title, detail } = ERROR_TEXT[code];
    expect(title).toMatch(/^[A-Z][a-z ]+$/);
    expect(detail).toMatch(/^[A-Z].*\.$/);
    expect(Object.values(ERROR_TEXT).filter((text) => text.title === title)).toHaveLength(1);
  });
});

describe('a refusal', () => {
  test('carries its public text, and its extras separately', () => {
    const error = new DomainError('state_conflict', { current_state: 'settled' });
    expect(error).toMatchObject({
      code: 'state_conflict',
      detail: ERROR_TEXT.state_conflict.detail,
      extras: { current_state: 'settled' },
    });
    expect(error.message).not.toContain('settled');
  });

  test('may have a detail of its own', () => {
    expect(new DomainError('not_found', {}, 'There is no such address.').detail).toBe('There is no such address.');
  });
});

describe('the faults of a command', () => {
  const faults = [
    { field: 'amount', rule: 'is too small' },
    { field: null, rule: 'a recipient needs bank_details' },
  ];

  test('are reported together', () => {
    expect(new ValidationError(faults)).toMatchObject({
      faults,
      message: 'amount: is too small; a recipient needs bank_details',
    });
  });

  test('are thrown only if there is one', () => {
    expect(() => requireNoFaults(faults)).toThrow(ValidationError);
    expect(() => requireNoFaults([])).not.toThrow();
  });
});
