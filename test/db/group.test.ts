/** What arrives together is done together (`db/group.ts`). */
import { expect, test } from 'vitest';
import type { Database } from '../../db/client.ts';
import { inGroups } from '../../db/group.ts';

const db = {} as Database;
const REFUSED = 3;

/** Doubles numbers, and keeps what each call was given. */
function doubling(options: Parameters<typeof inGroups>[1]) {
  const calls: (readonly number[])[] = [];
  const double = inGroups<number, number>(async (_db, items) => {
    calls.push(items);
    await Promise.resolve();
    if (items.includes(REFUSED)) throw new Error(`refused ${items.join()}`);
    return items.map((item) => item * 2);
  }, options);
  return { calls, double };
}

test('the first one waits for nothing, and those that arrive meanwhile share calls of a limited size', async () => {
  const { calls, double } = doubling({ sizeMax: 2 });
  expect(await Promise.all([4, 5, 6, 7, 8].map((item) => double(db, 'a', item)))).toEqual([8, 10, 12, 14, 16]);
  expect(calls).toEqual([[4], [5, 6], [7, 8]]);
});

test('queues and databases wait for no other', async () => {
  const { calls, double } = doubling({});
  await Promise.all([double(db, 'a', 4), double(db, 'b', 5), double({} as Database, 'a', 6)]);
  expect(calls).toEqual([[4], [5], [6]]);
});

test('after an error that splits each is done alone, and one that is refused hurts no other', async () => {
  const { calls, double } = doubling({ splitsOn: () => true });
  const results = await Promise.allSettled([4, 5, REFUSED, 7].map((item) => double(db, 'a', item)));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  expect(calls).toEqual([[4], [5, REFUSED, 7], [5], [REFUSED], [7]]);
});

test('after any other error all of its call fail, and the queue goes on', async () => {
  const { calls, double } = doubling({ sizeMax: 2 });
  const results = await Promise.allSettled([4, 5, REFUSED, 7, 8].map((item) => double(db, 'a', item)));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled', 'fulfilled']);
  expect(await double(db, 'a', 9)).toBe(18);
  expect(calls).toEqual([[4], [5, REFUSED], [7, 8], [9]]);
});

test('a call that has no result for one of its requests fails all of them', async () => {
  const short = inGroups<number, number>(async (_db, items) => items.slice(1));
  const results = await Promise.allSettled([4, 5, 6].map((item) => short(db, 'a', item)));
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
});
