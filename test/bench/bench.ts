/** What the benchmarks of `npm run bench` share. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { type Parameter, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import type { CommandTree, Printer } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { type Cell, tableOf } from './figure.ts';

export type Bench = CommandTree<Printer>;

const COUNT_MAX = 1_000_000;

/** An option that says how much is measured. */
export const count = (syntax: string, description: string, fallback: number): Parameter<number> =>
  withDefault(syntax, description, wholeNumber(1, COUNT_MAX), String(fallback));

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

type Table = { readonly head: readonly string[]; readonly rows: readonly (readonly Cell[])[] };

/** Prints the tables, and writes the same figures as JSON to `.local/bench/<bench>.json`. */
export function report(
  { print, warn, printData }: Printer,
  bench: string,
  tables: readonly Table[],
  figures: Readonly<Record<string, unknown>>,
): void {
  const data = { bench, at: new Date().toISOString(), load_average: loadavg(), ...figures };
  const directory = path.join(localDirectory, 'bench');
  const file = path.join(directory, `${bench}.json`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(file, `${JSON.stringify(data, null, 2)}\n`);
  for (const { head, rows } of tables) print(tableOf(head, rows));
  printData(data);
  warn(`written to ${file}`);
}
