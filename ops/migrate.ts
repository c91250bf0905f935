/** `npm run migrate`: brings the configured database to the current schema, then exits. */
import { loadMigrationConfig } from '../config/load.ts';
import { migrate } from '../db/migrate.ts';
import { command, EXIT, type Printer, runProgram, standardOutput } from './command-line/program.ts';
import { withCommandErrors } from './failure.ts';

const program = command({
  name: 'migrate',
  description:
    'Brings the database to the current schema as the role of MIGRATION_DATABASE_URL, and grants the role of DATABASE_URL what the service needs. Running it again changes nothing.',
  takes: {},
  json: false,
  run: ({ warn }: Printer) =>
    withCommandErrors(async () => {
      await migrate(loadMigrationConfig(), { onLocked: warn });
      return EXIT.done;
    }),
});

process.exitCode = await runProgram(program, process.argv.slice(2), standardOutput(), (act, printer) => act(printer));
