/** Which errors of a command are expected, and the sentence and exit code of each. */
import pg from 'pg';
import { ConfigError } from '../config/fault.ts';
import { causeOf, isUnavailable } from '../db/client.ts';
import { MigrationError } from '../db/privilege.ts';
import { DatabaseRoleError } from '../db/role.ts';
import { SealError } from '../db/seal.ts';
import { DomainError, ERROR_TEXT } from '../domain/error.ts';
import { temporalFaultOf } from '../process/temporal-health.ts';
import { CommandError, EXIT, type ExitCode } from './command-line/program.ts';

/** SQLSTATEs of a database that is older than this version, or another program's: what is named is not there. */
const NOT_THERE = ['42P01', '42703', '42883', '3F000'];

/** @throws CommandError for an expected error; every other error as it is */
export async function withCommandErrors(act: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof DomainError) {
      // The text for partners says "in your organization". An operator has none.
      const detail = error.detail === ERROR_TEXT.not_found.detail ? 'There is no such object.' : error.detail;
      throw new CommandError(EXIT.refused, `Refused, ${error.code}: ${detail}`);
    }
    if (error instanceof ConfigError) throw new CommandError(EXIT.configuration, error.message);
    if (error instanceof SealError)
      throw new CommandError(
        EXIT.configuration,
        `${error.message}: set ENCRYPTION_KEYS to those of the running processes, and see npm run ops -- keys list.`,
      );
    if (error instanceof MigrationError) throw new CommandError(EXIT.refused, error.message);
    const cause = causeOf(error);
    if (cause instanceof DatabaseRoleError) throw new CommandError(EXIT.configuration, cause.message);
    if (isUnavailable(error) && cause instanceof Error)
      throw new CommandError(EXIT.unavailable, `PostgreSQL does not answer: ${cause.message}`);
    if (cause instanceof pg.DatabaseError && NOT_THERE.includes(cause.code ?? ''))
      throw new CommandError(
        EXIT.refused,
        `The database lacks what this version needs: ${cause.message}. ` +
          'Run npm run migrate, or name the database of the service in DATABASE_URL.',
      );
    const fault = temporalFaultOf(error);
    if (fault !== undefined) throw new CommandError(EXIT.unavailable, fault.sentence);
    // The error of a failed query quotes its parameters; the driver's error does not.
    throw cause;
  }
}
