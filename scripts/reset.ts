/** `npm run reset`: removes all data of the stack that `npm start` runs in this clone. */
import path from 'node:path';
import { command, EXIT, type Printer, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { localDirectory, repositoryRoot } from '../process/local/place.ts';
import { outsideDirectories } from './stack/outside.ts';
import { removeData } from './stack/reset.ts';

const program = command({
  name: 'reset',
  description:
    'Removes all data of the stack in this clone, wherever it lies. Installed programs and the secrets stay.',
  takes: {},
  run: async ({ print, printData }: Printer) => {
    const removed = await removeData({ directory: localDirectory, outside: outsideDirectories() });
    for (const item of removed)
      print(`Removed ${item.startsWith(repositoryRoot) ? path.relative(repositoryRoot, item) : item}`);
    print(
      removed.length === 0
        ? 'There was no data.'
        : 'The next npm start begins with empty data. A database of DATABASE_URL stays as it is.',
    );
    printData({ removed });
    return EXIT.done;
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
