/**
 * Requests of the same kind share a call: while one call of a queue runs, new ones wait, and the next call serves all
 * of them. One that arrives alone is served at once. A call that has begun takes no more.
 */
import type { Database } from './client.ts';

/** All calls of a queue run as the tenant of the one that began it. If it has several, `run` says whose turn it is. */
export type Grouped<Item, Result> = (db: Database, queueId: string, item: Item) => Promise<Result>;

type NotEmpty<Item> = readonly [Item, ...(readonly Item[])];
type Waiting<Item, Result> = {
  readonly item: Item;
  readonly answer: (result: Result) => void;
  readonly fail: (error: unknown) => void;
};

/**
 * @param run does all items by one call, and returns their results in the same order
 * @param options `sizeMax` of a call. `splitsOn`: after such an error each item is done by a call of its own, so that
 *   one that is refused hurts no other
 */
export function inGroups<Item, Result>(
  run: (db: Database, items: NotEmpty<Item>) => Promise<readonly Result[]>,
  {
    sizeMax = Number.POSITIVE_INFINITY,
    splitsOn = () => false,
  }: { readonly sizeMax?: number; readonly splitsOn?: (error: unknown) => boolean } = {},
): Grouped<Item, Result> {
  type Queue = Waiting<Item, Result>[];
  const queuesOf = new WeakMap<Database, Map<string, Queue>>();

  const runGroup = async (db: Database, group: NotEmpty<Waiting<Item, Result>>): Promise<void> => {
    const [first, ...others] = group;
    try {
      const results = await run(db, [first.item, ...others.map(({ item }) => item)]);
      if (results.length !== group.length) throw new Error('a call has a result for each of its items');
      for (const [index, result] of results.entries()) group[index]?.answer(result);
    } catch (error) {
      if (others.length > 0 && splitsOn(error)) await Promise.all(group.map((each) => runGroup(db, [each])));
      else for (const { fail } of group) fail(error);
    }
  };
  const runQueue = async (db: Database, queues: Map<string, Queue>, queueId: string, queue: Queue): Promise<void> => {
    queues.set(queueId, queue);
    for (let [first, ...others] = queue.splice(0, sizeMax); first; [first, ...others] = queue.splice(0, sizeMax))
      await runGroup(db, [first, ...others]);
    queues.delete(queueId);
  };
  return (db, queueId, item) =>
    new Promise((answer, fail) => {
      const queues = queuesOf.get(db) ?? new Map<string, Queue>();
      queuesOf.set(db, queues);
      const queue = queues.get(queueId);
      const waiting = { item, answer, fail };
      if (queue) queue.push(waiting);
      else void runQueue(db, queues, queueId, [waiting]);
    });
}
