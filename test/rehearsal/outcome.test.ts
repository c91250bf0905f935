import { expect, test } from 'vitest';
import { runDifferences } from './outcome.ts';

test('a settlement without a run, or with one that has not completed, differs from what was accepted', () => {
  const runs = new Map([
    ['settlement:stl_1', ['COMPLETED', 'COMPLETED']],
    ['settlement:stl_2', ['COMPLETED', 'RUNNING']],
  ]);
  expect(runDifferences(runs, ['stl_1', 'stl_2', 'stl_3'])).toEqual([
    'settlement:stl_3 has no run',
    'settlement:stl_2 has the runs COMPLETED, RUNNING',
  ]);
});
