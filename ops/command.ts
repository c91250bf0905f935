/** What every operator's command uses, and how it reads its arguments: all faults at once, before anything is done. */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { Client } from '@temporalio/client';
import type { Config } from '../config.ts';
import type { CommandDeps } from '../db/commands/commit.ts';
import { operatorName } from '../domain/gate.ts';
import type { KeyRing } from './keys.ts';

export type OpsDeps = Pick<CommandDeps, 'db' | 'runtime' | 'now' | 'dispatcher'> & {
  readonly keys: KeyRing;
  /** The deployment that the service's workers are of, when they are of one. */
  readonly workerDeployment?: Config['workerDeployment'];
  /** For what a workflow must be asked; nothing else may need Temporal. */
  readonly client: () => Client;
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

const OPTIONS = {
  corridor: { type: 'string' },
  evidence: { type: 'string' },
  expires: { type: 'string' },
  operator: { type: 'string' },
  note: { type: 'string' },
} as const;
type Option = keyof typeof OPTIONS;

/** What was written after the command's name. */
export type Given = { readonly subject: string | undefined; readonly word: string | undefined } & Partial<
  Readonly<Record<Option, string>>
>;

/**
 * @param words how many arguments there may be beside the options
 * @throws UsageError for an option the command does not take, or a word too many
 */
export function readArgs(args: readonly string[], takes: readonly Option[], words: number): Given {
  const options = Object.fromEntries(takes.map((option) => [option, OPTIONS[option]]));
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (positionals.length > words) throw new UsageError(['Too many arguments.']);
    return { ...values, subject: positionals[0], word: positionals[1] };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError([error instanceof Error ? error.message : 'The arguments cannot be read.']);
  }
}

/** What was read, or the sentence that says why it could not be. */
export type Reading<Value> = { readonly value: Value } | { readonly fault: string };

/** @throws UsageError with every fault */
export function read<Shape extends Record<string, unknown>>(
  readings: { readonly [Name in keyof Shape]: Reading<Shape[Name]> },
): Shape {
  const faults = Object.values<Reading<unknown>>(readings).flatMap((reading) =>
    'fault' in reading ? [reading.fault] : [],
  );
  if (faults.length > 0) throw new UsageError(faults);
  return Object.fromEntries(
    Object.entries<Reading<unknown>>(readings).map(([name, reading]) => [
      name,
      'value' in reading ? reading.value : undefined,
    ]),
  ) as Shape;
}

export function oneOf<Value extends string>(
  what: string,
  values: readonly Value[],
  text: string | undefined,
): Reading<Value> {
  const value = values.find((candidate) => candidate === text);
  return value === undefined ? { fault: `The ${what} must be one of ${values.join(', ')}.` } : { value };
}

export function readText(what: string, text: string | undefined): Reading<string> {
  const value = text?.trim() ?? '';
  return value === '' ? { fault: `${what} is required.` } : { value };
}

/** Names have one spelling, so that nobody is two operators. */
export function readOperator(text: string | undefined): Reading<string> {
  const value = operatorName(text ?? '');
  return /^[a-z0-9][a-z0-9._@-]{0,63}$/.test(value)
    ? { value }
    : { fault: '--operator must be a name of letters, digits, dots, dashes, underscores and @.' };
}

/** What is done to one object, by whom and why; the audit entry says the same. */
export function readAct(
  what: string,
  given: Given,
): { readonly objectId: string; readonly operator: string; readonly note: string } {
  return read({
    objectId: readText(`The ${what} id`, given.subject),
    operator: readOperator(given.operator),
    note: readText('--note', given.note),
  });
}

/** What events and workflows say a change came from. */
export const newRequestId = (): string => `ops-${randomUUID()}`;
