/**
 * `npm run torture -- --seed 1 --minutes 5`: tries to refute that every accepted settlement has one outcome and that
 * every cent is paid out or shown as due back, whatever is killed, cut, slowed, doubled or reordered (docs/torture.md).
 */
import { flag, oneOf, optional, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import {
  command,
  EXIT,
  type ExitCode,
  type Provide,
  runProgram,
  standardOutput,
} from '../../ops/command-line/program.ts';
import { inRunFolder } from '../support/run-folder.ts';
import { planFaults } from './monkey.ts';
import { reportLines } from './report.ts';
import { type RunReport, torture } from './run.ts';
import { SABOTAGE_NAMES } from './sabotage.ts';

const SEED_MAX = 2 ** 31 - 1;
const MINUTES_MAX = 600;
/** How long a scenario that failed is made smaller. */
const SHRINK_MS = 120_000;

type Deps = {
  readonly print: (line: string) => void;
  readonly printData: (data: unknown) => void;
  readonly warn: (line: string) => void;
  /** Aborted by Ctrl-C: the stack is a set of processes, and an interrupted run must stop them. */
  readonly signal: AbortSignal;
};

const program = command({
  name: 'torture',
  description: 'Plays random scenarios while a monkey breaks the stack, and checks every promise afterwards.',
  takes: {
    seed: withDefault('--seed <n>', 'determines scenarios and faults', wholeNumber(0, SEED_MAX), '1'),
    minutes: withDefault('--minutes <n>', 'how long scenarios begin', wholeNumber(1, MINUTES_MAX), '5'),
    calm: flag('--calm', 'without the monkey'),
    sabotage: optional('--sabotage <name>', 'break a promise on purpose: the run must fail', oneOf(SABOTAGE_NAMES)),
  },
  run: async (deps: Deps, { seed, minutes, calm, sabotage }): Promise<ExitCode> => {
    const { signal } = deps;
    const report = await torture({
      seed,
      minutes,
      faults: calm ? [] : planFaults(seed, minutes * 60_000),
      sabotage,
      shrinkMs: SHRINK_MS,
      signal,
      say: deps.warn,
    });
    for (const line of reportLines(report)) deps.print(line);
    deps.printData(report);
    return isAsWanted(report, sabotage !== undefined) ? EXIT.done : EXIT.refused;
  },
});

/** A sabotage must be found. */
const isAsWanted = ({ violations }: RunReport, sabotaged: boolean): boolean => violations.length > 0 === sabotaged;

const provide: Provide<Deps> = async (act, printer) => {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => interrupted.abort());
  return await inRunFolder(() => act({ ...printer, signal: interrupted.signal }));
};

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), provide);
