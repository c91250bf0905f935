/** What every operator's command uses, and how it reads its arguments: all faults at once, before anything is done. */
import type { Database } from '../../db/client.ts';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';

export type OpsDeps = {
  readonly runtime: RuntimeEnvironment;
  readonly db: Database;
  readonly now: () => Date;
  readonly print: (line: string) => void;
};

/** The command line was wrong; every fault, a sentence each. */
export class UsageError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'UsageError';
    this.faults = faults;
  }
}

/** What was read, or the sentence that says why it could not be. */
export type Reading<Value> = { readonly value: Value } | { readonly fault: string };

/** @throws UsageError with every fault */
export function read<Shape extends Record<string, unknown>>(readings: { readonly [Name in keyof Shape]: Reading<Shape[Name]> }): Shape {
  const faults = Object.values<Reading<unknown>>(readings).flatMap((reading) => ('fault' in reading ? [reading.fault] : []));
  if (faults.length > 0) throw new UsageError(faults);
  return Object.fromEntries(
    Object.entries<Reading<unknown>>(readings).map(([name, reading]) => [name, 'value' in reading ? reading.value : undefined]),
  ) as Shape;
}

export function oneOf<Value extends string>(what: string, values: readonly Value[], text: string | undefined): Reading<Value> {
  const value = values.find((candidate) => candidate === text);
  return value === undefined ? { fault: `The ${what} must be one of ${values.join(', ')}.` } : { value };
}

export function readText(what: string, text: string | undefined): Reading<string> {
  const value = text?.trim() ?? '';
  return value === '' ? { fault: `${what} is required.` } : { value };
}
