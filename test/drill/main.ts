/**
 * `npm run drill`: breaks a local stack on purpose, and checks that alert, runbook and `npm run ops` lead to the remedy
 * (docs/drills.md).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { flag, oneOf, optional, type ValuesOf } from '../../ops/command-line/parameter.ts';
import {
  CommandError,
  command,
  EXIT,
  type ExitCode,
  type Printer,
  runProgram,
  standardOutput,
} from '../../ops/command-line/program.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { DRILLS, OPERATOR_NAME, SITUATIONS_NAME } from './drill.ts';
import { type Played, playTrouble } from './operator.ts';
import { type DrillResult, operatorTable, pageOf, situationTable, withOperator } from './page.ts';
import { type Runbook, readRunbook } from './runbook.ts';
import { createScene, type Drill } from './scene.ts';
import { type Finding, play } from './situation.ts';
import { startWorld, type World } from './world.ts';

const PAGE = path.join(repositoryRoot, 'docs', 'drills.md');
const NAMES = [...DRILLS.map(({ name }) => name), SITUATIONS_NAME, OPERATOR_NAME];

const TAKES = {
  name: optional('<name>', 'one drill; without it, all of them', oneOf(NAMES)),
  report: flag('--report', 'write docs/drills.md, or with `operator` that part of it'),
};

const program = command({
  name: 'drill',
  description: 'Breaks a local stack on purpose, and checks that alert, runbook and ops lead to the remedy.',
  takes: TAKES,
  run: async (printer: Printer, { name: wanted, report }: ValuesOf<typeof TAKES>): Promise<ExitCode> => {
    const isWanted = (name: string): boolean => wanted === undefined || wanted === name;
    const runbook = readRunbook();
    const world = await startWorld();
    const interrupt = () => void world.close().finally(() => process.exit(EXIT.refused));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, interrupt);
    try {
      const results: DrillResult[] = [];
      for (const drill of DRILLS.filter(({ name }) => isWanted(name)))
        results.push(await runDrill(drill, world, runbook, printer));
      const findings = isWanted(SITUATIONS_NAME) ? await playAll(world, runbook, printer) : [];
      const { played, failures } = isWanted(OPERATOR_NAME)
        ? await playOperator(world, runbook, printer)
        : { played: [], failures: [] };
      const isGreen = failures.length === 0 && results.every(({ failure }) => failure === undefined);
      if (report && isGreen && wanted === undefined) writeFileSync(PAGE, pageOf(results, findings, played));
      if (report && isGreen && wanted === OPERATOR_NAME)
        writeFileSync(PAGE, withOperator(readFileSync(PAGE, 'utf8'), played));
      printer.printData({ drills: results, situations: findings, operator: played, failures });
      return isGreen ? EXIT.done : EXIT.refused;
    } finally {
      await world.close();
    }
  },
});

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
  return { name, title, seconds, steps: scene.steps, failure };
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

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
