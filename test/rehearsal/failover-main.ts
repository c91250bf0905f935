/**
 * `npm run rehearse-failover`: what a failover of PostgreSQL loses, with a synchronous standby and an asynchronous one.
 */
import { wholeNumber, withDefault } from '../../ops/command-line/parameter.ts';
import { command, EXIT, type Printer, runProgram, standardOutput } from '../../ops/command-line/program.ts';
import { inRunFolder } from '../support/run-folder.ts';
import { MODES } from '../support/standby.ts';
import { type FailoverReport, rehearseFailover } from './failover.ts';

const SECONDS_MAX = 600;

const program = command({
  name: 'rehearse-failover',
  description:
    'Kills PostgreSQL under load and promotes its standby. Exits with 1 if a synchronous one loses anything, or if anything does not settle once.',
  takes: {
    seconds: withDefault('--seconds <n>', 'how long callers settle before the kill', wholeNumber(1, SECONDS_MAX), '10'),
  },
  json: false,
  run: async ({ print, warn }: Printer, { seconds }) => {
    const reports: FailoverReport[] = [];
    for (const mode of MODES) reports.push(await rehearseFailover({ mode, seconds, say: warn }));
    for (const line of tableOf(reports)) print(line);
    for (const { mode, violations } of reports) for (const violation of violations) warn(`${mode}: ${violation}`);
    return reports.every(isRight) ? EXIT.done : EXIT.refused;
  },
});

const isRight = ({ mode, lost, unreported, changed, settled, sent, violations }: FailoverReport): boolean =>
  (mode === 'asynchronous' || lost + unreported === 0) && changed === 0 && settled === sent && violations.length === 0;

/** As docs/operations.md shows it. */
const tableOf = (reports: readonly FailoverReport[]): string[] => [
  '| standby | accepted before the kill | lost | of these with another id when sent again | payments reported again | none accepted for | settled once, of all keys |',
  '|---|---|---|---|---|---|---|',
  ...reports.map(
    ({ mode, accepted, lost, changed, unreported, downSeconds, settled, sent }) =>
      `| ${mode} | ${accepted} | ${lost} | ${changed} | ${unreported} | ${downSeconds.toFixed(1)} s | ${settled} of ${sent} |`,
  ),
];

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) =>
  inRunFolder(() => act(printer)),
);
