/** What the benchmarks of `npm run bench` share: their options, and the form of their figures. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import type pg from 'pg';
import { type Parameter, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import type { CommandTree, Printer } from '../../ops/command-line/program.ts';
import { localDirectory } from '../../process/local/place.ts';
import { type Patience, until } from '../support/wait.ts';

export type Bench = CommandTree<Printer>;

/** One figure, or the values of all rounds; empty where there is none. */
export type Cell = string | readonly number[];
export type Table = { readonly head: readonly string[]; readonly rows: readonly (readonly Cell[])[] };

const COUNT_MAX = 1_000_000;

/** An option that says how much is measured. */
export const count = (syntax: string, description: string, fallback: number): Parameter<number> =>
  withDefault(syntax, description, wholeNumber(1, COUNT_MAX), String(fallback));

export const ROUNDS = count('--rounds <count>', 'how often each contender is measured', 5);

/** Waits until the statement finds nothing. */
export const untilNone = (database: pg.Pool, what: string, statement: string, patience: Patience) =>
  until(what, async () => (await database.query(statement)).rowCount === 0, patience);

/** The value that this share of all values lies below. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** The values of all rounds. Of an even number of them, the median is the mean of the two in the middle. */
export function spreadOf(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [below = Number.NaN, above = Number.NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  const [min = Number.NaN, max = Number.NaN] = [sorted[0], sorted.at(-1)];
  return { median: (below + above) / 2, min, max, rounds: values };
}

/** The ratio of two contenders in each round. It varies less than either of them. */
export const ratios = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value / (theirs[round] ?? Number.NaN));

/** Prints the tables as Markdown, and writes the same as JSON to `.local/bench/<bench>.json`. */
export function report({ print, warn, printData }: Printer, bench: string, tables: readonly Table[]): void {
  const data = { bench, at: new Date().toISOString(), load_average: loadavg(), tables: tables.map(dataOf) };
  const directory = path.join(localDirectory, 'bench');
  const file = path.join(directory, `${bench}.json`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(file, `${JSON.stringify(data, null, 2)}\n`);
  for (const table of tables) print(markdownOf(table));
  printData(data);
  warn(`written to ${file}`);
}

const dataOf = ({ head, rows }: Table): object[] =>
  rows.map((row) =>
    Object.fromEntries(row.map((cell, at) => [head[at], typeof cell === 'string' ? cell : spreadOf(cell)])),
  );

function markdownOf({ head, rows }: Table): string {
  const line = (cells: readonly Cell[]) => `| ${cells.map(shown).join(' | ')} |`;
  return ['', line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''].join('\n');
}

/** As in docs/performance.md: `median (least–greatest)`, or a single value alone. */
function shown(cell: Cell): string {
  if (typeof cell === 'string' || cell.length === 0) return String(cell);
  const { median, min, max } = spreadOf(cell);
  return cell.length === 1 ? short(median) : `${short(median)} (${short(min)}–${short(max)})`;
}

/** Three significant digits. On a shared machine, more would mean nothing. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(Math.abs(value) < 1 ? 2 : 3);
}
