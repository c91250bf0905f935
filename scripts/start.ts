/**
 * `npm start`: the whole service on one machine. It also starts a PostgreSQL and a Temporal, unless DATABASE_URL and
 * TEMPORAL_ADDRESS name others. Ctrl-C stops everything in order. After a kill, the next start recovers.
 */
import { command, EXIT, runProgram, standardOutput } from '../ops/command-line/program.ts';
import { complain } from './stack/lifetime.ts';
import { runStack } from './stack/run.ts';

const program = command({
  name: 'start',
  description: 'Starts PostgreSQL, Temporal, the worker and the API on this machine. Ctrl-C stops all in order.',
  takes: {},
  json: false,
  run: async (env: NodeJS.ProcessEnv) => {
    try {
      await runStack(env);
      return EXIT.done;
    } catch (error) {
      complain(error);
      return EXIT.refused;
    }
  },
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act) => act(process.env));
