import { getEventListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withLinkedAbort } from '../../activities/linked-abort.ts';

test('hundreds of activities follow one signal without a warning of a leak, and leave nothing behind', async ({
  onTestFinished,
}) => {
  const warnings: string[] = [];
  const listener = ({ name }: Error) => void warnings.push(name);
  process.on('warning', listener);
  onTestFinished(() => void process.off('warning', listener));
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 300 }, () => withLinkedAbort([signal], () => setImmediate())));
  expect(warnings).toEqual([]);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
