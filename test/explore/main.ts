/**
 * `npm run explore`: walks every order of what can happen to a settlement, with the `decide` that production runs, and
 * then looks for each fault that was put back. Exits 1 when a rule is broken, a row of the table of transitions was
 * never taken, or a sabotage is not found.
 */
import { type ValuesOf, wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type Printer, runProgram, standardOutput } from '../../ops/command-line/program.ts';
import { type Exploration, explore } from './explore.ts';
import { countsOf, lineOf, rowsNotTaken, storyOf } from './report.ts';
import { SABOTAGES } from './sabotage.ts';
import { DEPTH, everything, WHOLE } from './universe.ts';

const DEPTH_MAX = 9;

const TAKES = {
  depth: withDefault(
    '--depth <n>',
    'how many moves may come from outside where everything can happen',
    wholeNumber(1, DEPTH_MAX),
    String(DEPTH),
  ),
};

/** @returns the explorations of the decider that production runs */
function exploreAll({ print }: Printer, depth: number): Exploration[] {
  return [...WHOLE, everything(depth)].map((universe) => {
    const exploration = explore(universe);
    print(lineOf(exploration));
    if (exploration.fault) for (const line of storyOf(universe, exploration.fault)) print(`  ${line}`);
    return exploration;
  });
}

/** @returns the names of the sabotages that were not found */
function findSabotages({ print }: Printer): string[] {
  return Object.entries(SABOTAGES).flatMap(([name, { what, universe, decide }]) => {
    const { fault } = explore(universe, decide);
    print(`\n${name}: ${what}`);
    for (const line of fault ? storyOf(universe, fault, decide) : ['NOT FOUND']) print(`  ${line}`);
    return fault ? [] : [name];
  });
}

const program = command({
  name: 'explore',
  description: 'Walks every order of what can happen to a settlement, and checks every promise at every step.',
  takes: TAKES,
  run: async (printer: Printer, { depth }: ValuesOf<typeof TAKES>) => {
    const explorations = exploreAll(printer, depth);
    const rows = rowsNotTaken(explorations);
    for (const row of rows) printer.print(`Never taken: ${row}`);
    const notFound = findSabotages(printer);
    printer.printData({ universes: explorations.map(countsOf), rowsNotTaken: rows, sabotagesNotFound: notFound });
    const isClean = explorations.every(({ fault }) => fault === undefined);
    return isClean && rows.length === 0 && notFound.length === 0 ? EXIT.done : EXIT.refused;
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
