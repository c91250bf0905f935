import { expect, test } from 'vitest';
import { memoize } from '../../activities/memo.ts';

test('a result is computed once for each text, and never more texts are kept than the limit', () => {
  const computed: string[] = [];
  const upper = memoize(2, (text) => {
    computed.push(text);
    return text.toUpperCase();
  });
  expect(['a', 'b', 'a', 'b'].map(upper)).toEqual(['A', 'B', 'A', 'B']);
  expect(computed).toEqual(['a', 'b']);
  expect(['c', 'c', 'a'].map(upper)).toEqual(['C', 'C', 'A']);
  expect(computed).toEqual(['a', 'b', 'c', 'a']);
});

test('a failure is not remembered', () => {
  let calls = 0;
  const fails = memoize(2, () => {
    calls += 1;
    throw new Error('no');
  });
  expect(() => fails('a')).toThrow('no');
  expect(() => fails('a')).toThrow('no');
  expect(calls).toBe(2);
});
