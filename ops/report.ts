/**
 * What `show` says about one object: facts, lists and advice. It is made once, and printed as text or as JSON with the
 * same names and values.
 */
import { ROWS_MAX } from '../db/queries/operator/object.ts';
import type { ObjectKind } from '../db/queries/operator/object-kind.ts';
import { formatMoney, isCurrency } from '../domain/money.ts';
import { type Advice, runbookAddress } from '../domain/operator-advice.ts';
import type { Printer } from './command-line/program.ts';

type Value = string | number | boolean | Date | null;
/** Named values in the order in which they are printed. */
export type Row = Readonly<Record<string, Value>>;

export type Report = {
  readonly kind: ObjectKind | 'name';
  readonly id: string;
  readonly facts: Row;
  readonly lists: Readonly<Record<string, readonly Row[]>>;
  readonly next: readonly Advice[];
};

/** An amount as people read it: `250.00 USD`. An unknown currency has no known minor digits. */
export function money(amountMinor: bigint | null, currency: string | null): string | null {
  if (amountMinor === null || currency === null) return null;
  return isCurrency(currency)
    ? `${formatMoney(amountMinor, currency)} ${currency}`
    : `${amountMinor} minor units of ${currency}`;
}

type ReportOptions = {
  /** Ages are counted to it. */
  readonly now: Date;
  /** The address of docs/operations.md, if it is known. */
  readonly runbookUrl: string | undefined;
};

export function printReport({ print, printData }: Printer, report: Report, { now, runbookUrl }: ReportOptions): void {
  const { kind, id, facts, lists, next } = report;
  print(`${words(kind)} ${id}`);
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  for (const [name, value] of Object.entries(facts))
    if (value !== null) print(`  ${words(name).padEnd(width)}  ${textOf(value, now)}`);
  for (const [name, rows] of Object.entries(lists)) {
    print(`${words(name)}: ${rows.length === ROWS_MAX ? `${ROWS_MAX}, and there may be more` : rows.length || 'none'}`);
    for (const row of rows) print(`  ${lineOf(row)}`);
  }
  print('next');
  for (const { say, command, section } of next) {
    print(`  ${say}`);
    if (command !== '') print(`    ${command}`);
    if (section === null) continue;
    print(`    docs/operations.md, "${section}"`);
    if (runbookUrl !== undefined) print(`    ${runbookAddress(section, runbookUrl)}`);
  }
  printData({ kind, id, ...facts, ...lists, next });
}

export const words = (name: string): string => name.replaceAll('_', ' ');

/** The values of a row, each after its name unless it explains itself. */
export function lineOf(row: Row): string {
  const parts = Object.entries(row).flatMap(([name, value], index) => {
    if (value === null) return [];
    return index === 0 ? [textOf(value)] : [`${words(name)} ${textOf(value)}`];
  });
  return parts.join(', ');
}

function textOf(value: Exclude<Value, null>, now?: Date): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (!(value instanceof Date)) return String(value);
  return now === undefined ? value.toISOString() : `${value.toISOString()} (${distance(value, now)})`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** `2 h ago` or `in 5 min`. */
function distance(at: Date, now: Date): string {
  const byMs = at.getTime() - now.getTime();
  const text = age(Math.abs(byMs));
  return byMs > 0 ? `in ${text}` : `${text} ago`;
}

/** In the largest unit that fits, rounded down: `2 h`. */
export function age(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, size]) => ms >= size) ?? (['s', 1_000] as const);
  return `${Math.floor(ms / unitMs)} ${unit}`;
}
