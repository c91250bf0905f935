/** docs/requirements.md: every sentence of the specification is in the table, and each is held by tests that exist. */
import { expect, test } from 'vitest';
import { hasTest, readSource } from '../support/source.ts';
import { rowsOf } from './page-text.ts';

/** As many as the specification and the brief were divided into. */
const REQUIREMENTS = 86;

const [, ...ROWS] = rowsOf(readSource('docs/requirements.md'));

test('every requirement is in the table, once', () => {
  expect(ROWS).toHaveLength(REQUIREMENTS);
  expect(new Set(ROWS.map(([line, requirement]) => `${line}: ${requirement}`)).size).toBe(REQUIREMENTS);
});

test.each(ROWS)('line %s, %s: %s, which existing tests hold', (_line, _requirement, found = '', heldBy = '') => {
  const named = heldBy.split(' <br> ').filter(Boolean);
  expect(found).toMatch(/as written/);
  expect(named).not.toEqual([]);
  expect(named.filter((name) => !hasTest(name))).toEqual([]);
});

test('a test that is gone, and a file that is gone, are found missing', () => {
  expect(hasTest(`contract/requirement > ${['no such', 'test'].join(' ')}`)).toBe(false);
  expect(hasTest('contract/nothing > every requirement is in the table, once')).toBe(false);
  expect(hasTest('contract/requirement > every requirement is in the table, once')).toBe(true);
});
