/**
 * `npm run drill`: breaks a local stack on purpose, and checks that alert, runbook and `npm run ops` lead to the remedy
 * (docs/drills.md).
 */
import { oneOf, optional } from '../../ops/command-line/parameter.ts';
import {
  CommandError,
  command,
  EXIT,
  type ExitCode,
  type Printer,
  runProgram,
  standardOutput,
} from '../../ops/command-line/program.ts';
import { inRunFolder } from '../support/run-folder.ts';
import { DRILLS, OPERATOR_NAME, SITUATIONS_NAME } from './drill.ts';
import { type Played, playTrouble } from './operator.ts';
import { type Runbook, readRunbook } from './runbook.ts';
import { createScene, type Drill } from './scene.ts';
import { type Finding, play } from './situation.ts';
import { operatorTable, situationTable } from './table.ts';
import { startWorld, type World } from './world.ts';

const NAMES = [...DRILLS.map(({ name }) => name), SITUATIONS_NAME, OPERATOR_NAME];

const program = command({
  name: 'drill',
  description: 'Breaks a local stack on purpose, and checks that alert, runbook and ops lead to the remedy.',
  takes: { name: optional('<name>', 'one drill; without it, all of them', oneOf(NAMES)) },
  run: async (printer: Printer, { name: wanted }): Promise<ExitCode> => {
    const isWanted = (name: string): boolean => wanted === undefined || wanted === name;
    const runbook = readRunbook();
    const world = await startWorld();
    const interrupt = () => void world.close().finally(() => process.exit(EXIT.refused));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, interrupt);
    try {
      const drills: DrillResult[] = [];
      for (const drill of DRILLS.filter(({ name }) => isWanted(name)))
        drills.push(await runDrill(drill, world, runbook, printer));
      const situations = isWanted(SITUATIONS_NAME) ? await playAll(world, runbook, printer) : [];
      const { played, failures } = isWanted(OPERATOR_NAME)
        ? await playOperator(world, runbook, printer)
        : { played: [], failures: [] };
      printer.printData({ drills, situations, operator: played, failures });
      const isGreen = failures.length === 0 && drills.every(({ failure }) => failure === undefined);
      return isGreen ? EXIT.done : EXIT.refused;
    } finally {
      await world.close();
    }
  },
});

type DrillResult = {
  readonly name: string;
  readonly seconds: number;
  readonly steps: readonly string[];
  /** Why it failed; undefined when it did not. */
  readonly failure: string | undefined;
};

async function runDrill(drill: Drill, world: World, runbook: Runbook, { print }: Printer): Promise<DrillResult> {
  const { name, title } = drill;
  print(title);
  const startedMs = Date.now();
  const scene = createScene(world, print);
  const failure = await drill.run(scene, runbook).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  const seconds = Math.round((Date.now() - startedMs) / 1_000);
  print(failure === undefined ? `PASS ${name} in ${seconds} s` : `FAIL ${name}: ${failure}`);
  return { name, seconds, steps: scene.steps, failure };
}

/** @throws CommandError at the first situation whose cause is not found */
async function playAll(world: World, { firstLooks }: Runbook, { print }: Printer): Promise<Finding[]> {
  const findings: Finding[] = [];
  const scene = createScene(world, () => undefined);
  for (const look of firstLooks)
    findings.push(
      await play(scene, look).catch((error: unknown) => {
        throw new CommandError(EXIT.refused, error instanceof Error ? error.message : String(error));
      }),
    );
  for (const line of situationTable(findings)) print(line);
  return findings;
}

async function playOperator(world: World, { remedies }: Runbook, { print }: Printer) {
  const played: Played[] = [];
  const failures: string[] = [];
  const scene = createScene(world, () => undefined);
  for (const remedy of remedies) {
    const begunMs = Date.now();
    try {
      played.push(await playTrouble(scene, remedy));
      print(`PASS ${remedy.wrong} in ${Math.round((Date.now() - begunMs) / 1_000)} s`);
    } catch (error) {
      failures.push(remedy.wrong);
      print(`FAIL ${remedy.wrong}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  for (const line of operatorTable(played)) print(line);
  return { played, failures };
}

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) =>
  inRunFolder(() => act(printer)),
);
