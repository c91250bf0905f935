import { describe, expect, test } from 'vitest';
import { SCOPES, scopeCovers } from '../../domain/scope.ts';

/** The contract's table (§3): what a key of each scope may do. */
const CONTRACT = {
  read: ['read'],
  recipients: ['read', 'recipients'],
  compliance: ['read', 'compliance'],
  settle: ['read', 'settle'],
  full: ['read', 'recipients', 'compliance', 'settle', 'full'],
} as const;

describe('a key', () => {
  const pairs = SCOPES.flatMap((held) =>
    SCOPES.map((required) => [held, required, (CONTRACT[held] as readonly string[]).includes(required)] as const),
  );

  test.each(pairs.filter(([, , covers]) => !covers))(
    'is refused with scope %s where %s is required',
    (held, required) => {
      expect(scopeCovers(held, required)).toBe(false);
    },
  );

  test.each(pairs.filter(([, , covers]) => covers))(
    'is accepted with scope %s where %s is required',
    (held, required) => {
      expect(scopeCovers(held, required)).toBe(true);
    },
  );
});
