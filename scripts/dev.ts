/**
 * `npm run dev`: the stack of `npm start`, whose API and worker are built and started again when a source changes.
 * PostgreSQL and Temporal stay, and open settlements go on.
 */
import { command, EXIT, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { restartOnChange } from './dev/restart.ts';
import { complain } from './stack/lifetime.ts';
import { runStack } from './stack/run.ts';

const program = command({
  name: 'dev',
  description: 'As npm start, and starts the API and the worker again when their sources change. Ctrl-C stops all.',
  takes: {},
  json: false,
  run: async (env: NodeJS.ProcessEnv) => {
    try {
      await runStack(env, restartOnChange);
      return EXIT.done;
    } catch (error) {
      complain(error);
      return EXIT.refused;
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act) => act(process.env));
