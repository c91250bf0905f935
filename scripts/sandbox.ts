/** `npm run sandbox -- <command> …`: the local sandbox from the command line, on the stack that `npm start` runs. */
import { group, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { advance } from './sandbox/advance.ts';
import { event } from './sandbox/event.ts';
import { listen } from './sandbox/listen.ts';
import { scenarios } from './sandbox/scenarios.ts';
import { watch } from './sandbox/watch.ts';

const program = group('sandbox', 'Tries the local sandbox: the stack that npm start runs.', [
  scenarios,
  watch,
  event,
  advance,
  listen,
]);

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) =>
  act({ ...printer, env: process.env }),
);
