/** `scenarios`: every input of the sandbox that decides what happens, with the states that it leads to. */
import { SCENARIOS } from '../../domain/sandbox/scenario.ts';
import { command, EXIT } from '../../ops/command-line/program.ts';
import type { SandboxCommand, SandboxDeps } from './command.ts';

export const scenarios: SandboxCommand = command({
  name: 'scenarios',
  description:
    'Lists what can be tried, and the states that it leads to. Play one with npm run demo -- --scenario <name>.',
  takes: {},
  run: async ({ print, printData }: SandboxDeps) => {
    const width = Math.max(...SCENARIOS.map(({ name }) => name.length));
    for (const { name, summary, path, failure_code } of SCENARIOS) {
      print(`${name.padEnd(width)}  ${summary}`);
      print(`${' '.repeat(width)}  ${path.join(' → ')}${failure_code === null ? '' : ` (${failure_code})`}`);
    }
    printData(SCENARIOS);
    return EXIT.done;
  },
});
