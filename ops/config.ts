/** The configuration, checked without starting anything. A refused one ends every command with its faults and 78. */
import type { OpsCommand } from './command.ts';
import { command, EXIT, group } from './command-line/program.ts';

export const configCommands: OpsCommand = group('config', 'The configuration of this environment.', [
  command({
    name: 'check',
    description: 'Checks every variable as the service does, and connects to nothing.',
    takes: {},
    run: async ({ runtime, print, printData }) => {
      print(`The configuration has no faults. The runtime is ${runtime}.`);
      printData({ runtime, faults: [] });
      return EXIT.done;
    },
  }),
]);
