/**
 * `npm run rehearse-upgrade`: an upgrade from the released version and the way back, with settlements in every state.
 */
import {
  CommandError,
  command,
  EXIT,
  type Printer,
  runProgram,
  standardOutput,
} from '../../ops/command-line/program.ts';
import { inRunFolder } from '../support/run-folder.ts';
import { whyNotReleased } from './released.ts';
import { rehearseUpgrade, type UpgradeReport } from './upgrade.ts';

const program = command({
  name: 'rehearse-upgrade',
  description:
    'Runs the released version and this one side by side, and back, with settlements in every state. Exits with 1 unless each ended as it should, once.',
  takes: {},
  json: false,
  run: async ({ print, warn }: Printer) => {
    const missing = await whyNotReleased();
    if (missing !== undefined) throw new CommandError(EXIT.unavailable, missing);
    const report = await rehearseUpgrade({ extent: 'each step', say: warn });
    for (const line of tableOf(report)) print(line);
    const faults = [...report.ways.flatMap((way) => way.faults), ...report.violations];
    for (const fault of faults) warn(fault);
    return faults.length === 0 ? EXIT.done : EXIT.refused;
  },
});

/** As docs/operations.md shows it. */
const tableOf = ({ ways }: UpgradeReport): string[] => [
  '| begun by | ended by | settlements | rested in | wrong |',
  '|---|---|---|---|---|',
  ...ways.map(({ begun, ended, settlements, rested, faults }) => {
    const states = rested.map((state) => `\`${state}\``).join(', ');
    return `| ${begun} | ${ended} | ${settlements} | ${states} | ${faults.length} |`;
  }),
];

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) =>
  inRunFolder(() => act(printer)),
);
