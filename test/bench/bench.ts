/** One benchmark of `npm run bench`. */
export type Bench = {
  /** After `npm run bench --`. */
  readonly usage: string;
  /** @returns the exit code: 0 when it was measured */
  run(args: readonly string[]): Promise<number>;
};

/** The value below which this share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Runs a task so many times, so many at once. */
export async function inParallel(times: number, atOnce: number, task: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < times) {
      const index = next;
      next += 1;
      await task(index);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}
