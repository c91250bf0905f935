/** `npm run sandbox -- <command> …`: the local sandbox from the command line, on the stack that `npm start` runs. */
import { group, runProgram, standardOutput } from '../process/command-line.ts';
import { advance } from './sandbox/advance.ts';
import { event } from './sandbox/event.ts';
import { listen } from './sandbox/listen.ts';
import { resolve } from './sandbox/resolve.ts';
import { scenarios } from './sandbox/scenarios.ts';
import { settlements } from './sandbox/settlements.ts';
import { watch } from './sandbox/watch.ts';

const program = group('sandbox', 'Tries the local sandbox: the stack that npm start runs.', [
  scenarios,
  settlements,
  watch,
  event,
  advance,
  resolve,
  listen,
]);

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) =>
  act({ ...printer, env: process.env }),
);
