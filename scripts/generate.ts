/** `npm run generate`: writes what is generated from the code: pages of `docs/`, and the types of the clients. */

import { flag, type ValuesOf } from '../ops/command-line/parameter.ts';
import { command, EXIT, type Printer, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { repositoryRoot } from '../process/local/place.ts';
import { generatedFiles, staleFiles, writeFiles } from './generate/file.ts';

const TAKES = {
  onlyChecks: flag('--check', 'write nothing, and exit with 1 and the name of each stale file'),
};

const program = command({
  name: 'generate',
  description: 'Writes what is generated from the code: pages of docs/, and the types of the clients.',
  takes: TAKES,
  json: false,
  run: async ({ print, warn }: Printer, { onlyChecks }: ValuesOf<typeof TAKES>) => {
    const files = await generatedFiles();
    if (onlyChecks) {
      const stale = await staleFiles(repositoryRoot, files);
      for (const file of stale) warn(`${file} is stale: run npm run generate`);
      return stale.length === 0 ? EXIT.done : EXIT.refused;
    }
    for (const file of await writeFiles(repositoryRoot, files)) print(`wrote ${file}`);
    return EXIT.done;
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
