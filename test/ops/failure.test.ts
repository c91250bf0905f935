/** Expected failures of the operators' commands: one line, and an exit code that says what to do. */
import { ServiceError } from '@temporalio/client';
import { DrizzleQueryError } from 'drizzle-orm';
import pg from 'pg';
import { expect, test } from 'vitest';
import { ConfigError } from '../../config/fault.ts';
import { connect } from '../../db/client.ts';
import { MigrationError } from '../../db/privilege.ts';
import { DatabaseRoleError } from '../../db/role.ts';
import { DomainError } from '../../domain/error.ts';
import { withCommandErrors } from '../../ops/failure.ts';
import { createOps, temporalSilence } from '../support/ops.ts';

const failureOf = (error: Error) => withCommandErrors(() => Promise.reject(error));

test('a command exits with 69 when PostgreSQL does not answer', async () => {
  const url = 'postgresql://nobody@127.0.0.1:1/none';
  const connection = connect(url, { poolSizeMax: 1, name: 'test', onIdleError: () => undefined });
  const ops = createOps(connection.db);
  const results = [await ops('waiting'), await ops('cancel', 'stl_1', '--operator', 'ana', '--note', 'why', '--yes')];
  await connection.close();
  for (const result of results) {
    expect(result).toEqual({
      exitCode: 69,
      printed: [],
      warned: ['PostgreSQL does not answer: connect ECONNREFUSED 127.0.0.1:1'],
    });
  }
});

test.for(['42P01', '42703', '42883', '3F000'])(
  'a command exits with 1 and says what to do when the database lacks what this version needs: %s',
  async (code) => {
    const cause = Object.assign(new pg.DatabaseError('relation "settlements" does not exist', 1, 'error'), { code });
    await expect(failureOf(new DrizzleQueryError('SELECT 1', [], cause))).rejects.toMatchObject({
      exitCode: 1,
      message:
        'The database lacks what this version needs: relation "settlements" does not exist. ' +
        'Run npm run migrate, or name the database of the service in DATABASE_URL.',
    });
  },
);

test.for([
  ['is not reachable', 14],
  ['does not answer in time', 4],
] as const)('a command exits with 69 when Temporal %s', async ([, code]) => {
  const cause = temporalSilence(code);
  for (const error of [cause, new ServiceError('Workflow Update failed', { cause })]) {
    await expect(failureOf(error)).rejects.toMatchObject({
      exitCode: 69,
      message: 'Temporal does not answer: No connection established',
    });
  }
});

test('a command exits with 78 when its role could change what is permanent, and with 1 when a migration is refused', async () => {
  const role = new DatabaseRoleError('owner');
  const query = new DrizzleQueryError('SELECT 1', [], role);
  await expect(failureOf(query)).rejects.toMatchObject({ exitCode: 78, message: role.message });
  const refused = new MigrationError('one waits');
  await expect(failureOf(refused)).rejects.toMatchObject({ exitCode: 1, message: refused.message });
});

test('a command exits with 78 for an invalid configuration, and names each fault', async () => {
  await expect(failureOf(new ConfigError(['DATABASE_URL is required']))).rejects.toMatchObject({
    exitCode: 78,
    message: expect.stringContaining('DATABASE_URL is required'),
  });
});

test('a command for an object that does not exist says so without naming an organization', async () => {
  await expect(failureOf(new DomainError('not_found'))).rejects.toMatchObject({
    exitCode: 1,
    message: 'Refused, not_found: There is no such object.',
  });
});

test('an unexpected error of a query does not quote the parameters of the query', async () => {
  const error = new DrizzleQueryError('SELECT $1', ['secret'], new Error('syntax error'));
  await expect(failureOf(error)).rejects.toMatchObject({ message: 'syntax error' });
});
