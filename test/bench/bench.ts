/** One benchmark of `npm run bench`. */
export type Bench = {
  /** After `npm run bench --`. */
  readonly usage: string;
  /** @returns the exit code: 0 when the benchmark measured everything */
  run(args: readonly string[]): Promise<number>;
};

/** The value that this share of all values lies below. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Runs a task `times` times, at most `atOnce` at the same time. */
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
