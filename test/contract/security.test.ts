/** `docs/security.md` names the test behind every item. The tests that it names exist, and no item is without one. */
import { expect, test } from 'vitest';
import { readSource, sourceFiles } from '../support/source.ts';

const ROWS = readSource('docs/security.md')
  .split('\n')
  .filter((line) => /^\| (API|V)\d/.test(line));
const FILES = sourceFiles('.ts');

test('every chapter and every item is in the table', () => {
  const items = ROWS.map((row) => /^\| ((?:API|V)\d+)/.exec(row)?.[1]);
  const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n + 1}`);
  expect(items).toEqual([...numbered('API', 10), ...numbered('V', 17)]);
});

test.each(ROWS)('docs/security.md names existing tests in: %s', (row) => {
  const named = [...row.matchAll(/`([\w/*-]+\.test\.ts)`/g)].map(([, name = '']) => name);
  for (const name of named) {
    const pattern = new RegExp(`(^|/)${name.replaceAll('.', '\\.').replaceAll('*', '[\\w-]*')}$`);
    expect(
      FILES.filter((file) => file.startsWith('test/') && pattern.test(file)),
      name,
    ).not.toEqual([]);
  }
  const isOut = row.includes('out of scope');
  expect(isOut || named.length > 0 || row.includes('`test/') || row.includes('`npm run')).toBe(true);
});
