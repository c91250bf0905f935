/** `npm run migrate`: brings the configured database to the current schema, then exits. */
import { loadConfig } from '../config.ts';
import { migrate } from '../db/migrate.ts';
import { command, EXIT, runProgram, standardOutput } from '../process/command-line.ts';
import { withCommandErrors } from './failure.ts';

const program = command({
  name: 'migrate',
  description: 'Brings the database of DATABASE_URL to the current schema. Running it again changes nothing.',
  takes: {},
  json: false,
  run: () =>
    withCommandErrors(async () => {
      await migrate(loadConfig().databaseUrl);
      return EXIT.done;
    }),
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act) => act(undefined));
