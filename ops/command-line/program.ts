/**
 * One style for the command lines of operators, the sandbox and the benchmarks. Commander parses the arguments and
 * writes the help. Results go to stdout, messages go to stderr, and all invalid values are reported at once.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Argument, Command, CommanderError, Option } from 'commander';
import { nameOf, type Parameter, type Parameters, type Reading, type ValuesOf } from './parameter.ts';

/** From 64 up these are the codes of sysexits.h. docs/operations.md has the same table. */
export const EXIT = {
  done: 0,
  refused: 1,
  usage: 2,
  preview: 3,
  unavailable: 69,
  unexpected: 70,
  configuration: 78,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command line is wrong; one sentence for each fault. */
class UsageError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'UsageError';
    this.faults = faults;
  }
}

/** An expected failure: its message says enough, so no stack trace is printed. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode, message: string) {
    super(message);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}

/** Where lines go: stdout and stderr, or the arrays of a test. */
export type Output = { readonly print: (line: string) => void; readonly warn: (line: string) => void };

/** A command prints its result twice: lines for people by `print`, data for programs by `printData`. One is silent. */
export type Printer = Output & {
  /** Prints a JSON document on one line. */
  readonly printData: (data: unknown) => void;
};

type Act<Deps> = (deps: Deps) => Promise<ExitCode>;
/** Makes what a command needs, runs the command and releases it. Called only when the command line is valid. */
export type Provide<Deps> = (act: Act<Deps>, printer: Printer) => Promise<ExitCode>;

export type CommandSpec<Deps, Takes extends Parameters> = {
  readonly name: string;
  readonly description: string;
  readonly takes: Takes;
  /** The rules across parameters; one sentence for each fault. Values that have a fault themselves are missing. */
  readonly check?: (values: Partial<ValuesOf<Takes>>) => readonly string[];
  /** False for a command without a result. */
  readonly json?: boolean;
  /**
   * Only for a command that changes something. It shows what `run` would do, and changes nothing. Without `--yes` it
   * runs in place of `run`.
   */
  readonly preview?: (deps: Deps, values: ValuesOf<Takes>) => Promise<ExitCode>;
  readonly run: (deps: Deps, values: ValuesOf<Takes>) => Promise<ExitCode>;
};

/** The run of one command line. */
type Session<Deps> = {
  readonly output: Output;
  readonly provide: Provide<Deps>;
  /** The innermost command that was reached: faults point to its help. */
  reached: Command;
  exitCode: ExitCode;
};

/** A command, or a group of commands. */
export type CommandTree<Deps> = {
  readonly name: string;
  readonly declare: (declared: Command, session: Session<Deps>) => void;
};

/** A command with its parameters. */
export const command = <Deps, Takes extends Parameters>(spec: CommandSpec<Deps, Takes>): CommandTree<Deps> => ({
  name: spec.name,
  declare: (declared, session) =>
    declareCommand(declared, session, spec, (values, printer, isConfirmed) =>
      session.provide(async (deps) => {
        if (spec.preview === undefined || isConfirmed) return await spec.run(deps, values);
        const exitCode = await spec.preview(deps, values);
        if (exitCode !== EXIT.done) return exitCode;
        printer.warn('Nothing was changed. Repeat the command with --yes to do it.');
        return EXIT.preview;
      }, printer),
    ),
});

/** Commands under one name. */
export const group = <Deps>(
  name: string,
  description: string,
  commands: readonly CommandTree<Deps>[],
): CommandTree<Deps> => ({
  name,
  declare: (declared, session) => {
    declared.description(description);
    for (const child of commands) child.declare(declareChild(declared, child.name, session), session);
  },
});

/**
 * Runs one command line. Every error ends here, as lines on stderr.
 *
 * @param program its name is that of the npm script
 * @param args without the program's name
 */
export async function runProgram<Deps>(
  program: CommandTree<Deps>,
  args: readonly string[],
  output: Output,
  provide: Provide<Deps>,
): Promise<ExitCode> {
  const root = new Command(`npm run ${program.name} --`);
  const session: Session<Deps> = { output, provide, reached: root, exitCode: EXIT.done };
  adopt(root, session).version(packageVersion(), '--version', 'show the version');
  program.declare(root, session);
  try {
    await root.parseAsync([...args], { from: 'user' });
    return session.exitCode;
  } catch (error) {
    return reportFailure(error, session);
  }
}

/** stdout and stderr of this process. When their reader has gone (`| head`), the lines are dropped, not the command. */
export function standardOutput(): Output {
  const streams = { print: process.stdout, warn: process.stderr };
  for (const stream of Object.values(streams)) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
  return {
    print: (line) => void streams.print.write(`${line}\n`),
    warn: (line) => void streams.warn.write(`${line}\n`),
  };
}

function declareCommand<Deps, Takes extends Parameters>(
  declared: Command,
  session: Session<Deps>,
  { description, takes, check, json = true, preview }: Omit<CommandSpec<Deps, Takes>, 'name' | 'run'>,
  run: (values: ValuesOf<Takes>, printer: Printer, isConfirmed: boolean) => Promise<ExitCode>,
): void {
  const readers = Object.entries(takes).map(
    ([name, taken]) => [name, declareParameter(declared, taken), nameOf(taken)] as const,
  );
  if (preview) declared.option('--yes', 'do it; without it, the command only shows what it would do');
  if (json) declared.option('--json', 'print the result as JSON');
  declared
    .description(description)
    .usage(
      [...Object.values(takes).map(usageOf), ...(preview ? ['[--yes]'] : []), ...(json ? ['[--json]'] : [])].join(' '),
    );
  declared.action(async () => {
    session.reached = declared;
    const readings = readers.map(([name, read, label]) => ({ name, label, reading: read() }));
    const values = Object.fromEntries(
      readings.flatMap(({ name, reading }) => ('value' in reading ? [[name, reading.value]] : [])),
    ) as ValuesOf<Takes>;
    const faults = readings.flatMap(({ label, reading }) => ('fault' in reading ? [`${label} ${reading.fault}`] : []));
    const all = [...faults, ...(check?.(values) ?? [])];
    if (all.length > 0) throw new UsageError(all);
    const { json: isJson = false, yes = false } = declared.opts<{ json?: true; yes?: true }>();
    session.exitCode = await run(values, printerOf(session.output, isJson), yes);
  });
}

/** @returns what reads the value after Commander has parsed the command line */
function declareParameter(declared: Command, parameter: Parameter<unknown>): () => Reading<unknown> {
  const { syntax, description, choices, fallback } = parameter;
  if (!syntax.startsWith('--')) {
    const argument = new Argument(`[${syntax.slice(1, -1)}]`, description);
    if (choices.length > 0) argument.argChoices = [...choices];
    const place = declared.registeredArguments.length;
    declared.addArgument(argument);
    return () => parameter.read(declared.args.slice(place, place + 1));
  }
  const option = new Option(syntax, description);
  if (choices.length > 0) option.argChoices = [...choices];
  if (fallback !== undefined) option.default([], fallback);
  if (option.required) option.argParser((given: string, before: string[] | undefined) => [...(before ?? []), given]);
  declared.addOption(option);
  return () => {
    const given: unknown = declared.getOptionValue(option.attributeName());
    if (!Array.isArray(given)) return parameter.read(given === true ? [''] : []);
    // Commander takes the next word as the value, even when the value was forgotten and the word is another option.
    const isForgotten = given.some((word) => declared.options.some(({ long }) => long === word));
    return isForgotten ? { fault: 'needs a value.' } : parameter.read(given);
  };
}

function usageOf({ syntax, isRequired }: Parameter<unknown>): string {
  if (isRequired) return syntax;
  return syntax.startsWith('--') ? `[${syntax}]` : `[${syntax.slice(1, -1)}]`;
}

const printerOf = ({ print, warn }: Output, isJson: boolean): Printer => ({
  print: (line) => (isJson ? undefined : print(line)),
  printData: (data) => (isJson ? print(JSON.stringify(data)) : undefined),
  warn,
});

const declareChild = <Deps>(parent: Command, name: string, session: Session<Deps>): Command =>
  adopt(parent.command(name), session);

/** Makes Commander throw where it would end the process, and write where the session writes. */
const adopt = <Deps>(declared: Command, session: Session<Deps>): Command =>
  declared
    .helpCommand(false)
    .helpOption('--help', 'show this help')
    .configureHelp({ subcommandTerm: (child) => child.name() })
    .configureOutput({
      writeOut: (written) => session.output.print(written.trimEnd()),
      writeErr: (written) => session.output.warn(written.trimEnd()),
      outputError: () => undefined,
    })
    .exitOverride((error) => {
      session.reached = declared;
      throw error;
    });

function reportFailure<Deps>(error: unknown, { output, reached }: Session<Deps>): ExitCode {
  if (error instanceof CommandError) {
    output.warn(error.message);
    return error.exitCode;
  }
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
  // A group without a command: Commander has written the help to stderr.
  if (error instanceof CommanderError && error.code === 'commander.help') return EXIT.usage;
  if (error instanceof UsageError || error instanceof CommanderError) {
    for (const fault of error instanceof UsageError ? error.faults : [sentenceOf(error)]) output.warn(fault);
    output.warn(`See ${pathOf(reached)} --help`);
    return EXIT.usage;
  }
  if (isSystemError(error)) {
    output.warn(`The system refuses it: ${error.message}.`);
    return EXIT.unavailable;
  }
  output.warn(`Unexpected error, a fault of this program: ${unexpectedText(error)}`);
  return EXIT.unexpected;
}

/** The system refused to read or write a file: because of its rights, or a full disk. The message names the file. */
const SYSTEM_ERRORS: readonly unknown[] = ['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT'];

const isSystemError = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && SYSTEM_ERRORS.includes(error.code);

/** Kind, message and place in one line. A stack trace would hide what the command printed. */
function unexpectedText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frame = error.stack?.split('\n').find((line) => line.includes('at ') && !line.includes('node_modules'));
  const place = frame === undefined ? '' : ` (${frame.trim()})`;
  return `${error.name}: ${error.message.split('\n')[0] ?? ''}${place}`;
}

/** Commander writes "error: unknown option '--al'" and a suggestion on a line of its own. */
function sentenceOf({ message }: CommanderError): string {
  const [first = '', ...rest] = message.replace(/^error: /, '').split('\n');
  const sentence = `${first.charAt(0).toUpperCase()}${first.slice(1)}${first.endsWith('.') ? '' : '.'}`;
  return [sentence, ...rest].join(' ');
}

const pathOf = (declared: Command): string =>
  declared.parent ? `${pathOf(declared.parent)} ${declared.name()}` : declared.name();

function packageVersion(): string {
  const file = path.join(import.meta.dirname, '..', '..', 'package.json');
  const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed ? String(parsed.version) : 'unknown';
}
