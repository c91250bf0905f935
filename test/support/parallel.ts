/**
 * Does the work for each item, for at most `atOnce` of them at the same time. `Array(n).keys()` does it `n` times.
 *
 * @returns the results in the order of the items
 */
export async function inParallel<Item, Result>(
  items: Iterable<Item>,
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = [...items].entries();
  const lane = async (): Promise<void> => {
    for (const [index, item] of left) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return results;
}
