/** What the operators' commands share: what they work with, and the parameters that most of them take. */
import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { isUnavailable, rehearse } from '../db/client.ts';
import type { CommandDeps } from '../db/commands/commit.ts';
import type { Runs } from '../db/commands/lost-run.ts';
import { withClockAhead } from '../db/id.ts';
import { operatorName } from '../domain/gate.ts';
import type { RetentionDays } from '../domain/retention.ts';
import type { TemporalHealth } from '../domain/temporal-health.ts';
import type { UnservedQueue } from '../domain/worker-version.ts';
import { isClockRight, measureDatabase } from '../process/readiness.ts';
import type { ListedRun, RunDescription } from '../process/runs.ts';
import {
  type Parameter,
  type Parameters,
  type Reader,
  required,
  text,
  type ValuesOf,
} from './command-line/parameter.ts';
import { type CommandSpec, type CommandTree, command, type ExitCode, type Printer } from './command-line/program.ts';
import type { KeyRing } from './keys.ts';
import { requireOperator } from './operator-token.ts';

export type OpsDeps = Printer &
  Pick<CommandDeps, 'db' | 'runtime' | 'now' | 'dispatcher' | 'crash'> & {
    readonly keys: KeyRing;
    /** What the limits of tiers are shares of. */
    readonly rateLimitPerMinute: number;
    readonly retentionDays: RetentionDays;
    /** The token of the operator who runs the command; undefined when none is set. */
    readonly operatorToken?: string | undefined;
    /** The command only shows what it would do: what it writes to the database is rolled back. */
    readonly isPreview?: boolean;
    /** Connects to Temporal when it is called. Commands that do not need Temporal must work without it. */
    readonly client: () => Client;
    /** These connect as `client` does. */
    readonly runs: Runs;
    readonly listRuns: (since: Date) => Promise<readonly ListedRun[]>;
    readonly describeRun: (workflowId: string) => Promise<RunDescription | undefined>;
    readonly temporalHealth: () => Promise<TemporalHealth>;
    readonly unservedQueues: (now: Date) => Promise<readonly UnservedQueue[]>;
    /** The page of the namespace in Temporal UI; undefined where no address is configured. */
    readonly temporalUi?: string | undefined;
    /** Where operators read docs/operations.md; undefined where no address is configured. */
    readonly runbookUrl?: string | undefined;
  };

export type OpsCommand = CommandTree<OpsDeps>;

type ChangeParameters = Parameters & { readonly operator: Parameter<string> };

/**
 * A command that changes something. It first checks the operator, and goes by the database's clock. Its preview is the
 * command itself in a transaction that is rolled back, so that it refuses what the command would refuse.
 *
 * @param spec `checksOperator`: `run` checks the operator itself, in its transaction
 */
export const changeCommand = <Takes extends ChangeParameters>({
  checksOperator = false,
  preview,
  run,
  ...spec
}: CommandSpec<OpsDeps, Takes> & { readonly checksOperator?: boolean }): OpsCommand => {
  type Values = ValuesOf<Takes>;
  const byOperator =
    (act: (deps: OpsDeps, values: Values) => Promise<ExitCode>) =>
    async (deps: OpsDeps, values: Values): Promise<ExitCode> => {
      if (!checksOperator) await requireOperator(deps, (values as ValuesOf<ChangeParameters>).operator);
      return await byDatabaseClock(deps, (timed) => act(timed, values));
    };
  const rehearsed = (deps: OpsDeps, values: Values) => previewOf(deps, (rehearsing) => run(rehearsing, values));
  const shown = byOperator(preview ?? rehearsed);
  return command({
    ...spec,
    preview: (deps: OpsDeps, values: Values) => shown({ ...deps, isPreview: true }, values),
    run: byOperator(run),
  });
};

/** As `command`, for one that compares with the time: it goes by the database's clock, too. */
export const timedCommand = <Takes extends Parameters>({ run, ...spec }: CommandSpec<OpsDeps, Takes>): OpsCommand =>
  command({
    ...spec,
    run: (deps: OpsDeps, values: ValuesOf<Takes>) => byDatabaseClock(deps, (timed) => run(timed, values)),
  });

/**
 * Nobody compares the clock of an operator's machine with that of the database, as a process does that is ready. By a
 * wrong one, a change would be dated where partners do not look for its events any more, or yet, and a key that is still
 * valid would count as expired. Its ids have the same time: an event lies in the month of its id, and few months exist ahead.
 */
async function byDatabaseClock<Result>(deps: OpsDeps, act: (deps: OpsDeps) => Promise<Result>): Promise<Result> {
  const { clockOffsetMs } = await measureDatabase({ db: deps.db, now: () => new Date() });
  if (isClockRight(clockOffsetMs)) return await act(deps);
  const now = () => new Date(deps.now().getTime() - clockOffsetMs);
  return await withClockAhead(clockOffsetMs, () => act({ ...deps, now }));
}

const previewOf = (deps: OpsDeps, run: (deps: OpsDeps) => Promise<ExitCode>): Promise<ExitCode> =>
  rehearse(deps.db, (db) =>
    run({
      ...deps,
      db,
      isPreview: true,
      print: (line) => deps.print(`Preview: ${line}`),
      printData: (data) => deps.printData({ preview: data }),
    }),
  );

/**
 * Makes a change whose secret is shown once. When the answer to its commit is lost, nobody knows whether the secret is
 * valid, and it could not be shown later: so it is shown nevertheless.
 *
 * @param sentence has the secret, and says how to find out whether it is valid
 */
export async function showingSecret<Result>(
  { isPreview, warn }: Pick<OpsDeps, 'isPreview' | 'warn'>,
  sentence: string,
  change: () => Promise<Result>,
): Promise<Result> {
  try {
    return await change();
  } catch (error) {
    if (isUnavailable(error) && isPreview !== true) warn(sentence);
    throw error;
  }
}

/** Each name has one spelling, so that one person is never counted as two operators. */
export const operatorReader: Reader<string> = {
  read: (given) => {
    const value = operatorName(given);
    return /^[a-z0-9][a-z0-9._@-]{0,63}$/.test(value)
      ? { value }
      : { fault: 'must be a name of letters, digits, dots, dashes, underscores and @.' };
  },
};

export const operator = required('--operator <name>', 'who runs the command, for the audit entry', operatorReader);

/** Every change says who makes it and why. */
export const AUDIT_PARAMETERS = { operator, note: required('--note <why>', 'the reason, for the audit entry', text) };

/** The request id of the events and workflow signals that a command causes. */
export const newRequestId = (): string => `ops-${randomUUID()}`;
