/** The environment of a command that names no database: it uses the stack that runs in this clone. */
import { expect, test } from 'vitest';
import { completeEnvironment, type StackAddresses } from '../../process/local/running-stack.ts';

const STACK: StackAddresses = {
  apiUrl: 'http://127.0.0.1:3000',
  databaseUrl: 'postgresql://settlement:secret@127.0.0.1:5433/settlement',
  migrationUrl: 'postgresql://settlement_owner:secret@127.0.0.1:5433/settlement',
  temporalAddress: '127.0.0.1:7234',
};
const findStack = (): StackAddresses => STACK;
const mustNotFind = (): never => {
  throw new Error('the running stack was looked for');
};

test.each([
  ['a database', { DATABASE_URL: 'postgresql://db.example/settlement' }],
  [
    'a database of the local sandbox',
    { RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: 'postgresql://127.0.0.1/other' },
  ],
  ['a remote runtime without a database', { RUNTIME_ENVIRONMENT: 'production' }],
])('no running stack is looked for when the environment names %s', (_what, given) => {
  expect(completeEnvironment(given, mustNotFind)).toEqual(given);
});

test('an environment stays as it is when no stack runs', () => {
  expect(completeEnvironment({ LOG_LEVEL: 'warn' }, () => undefined)).toEqual({ LOG_LEVEL: 'warn' });
});

test.each([{}, { DATABASE_URL: '' }, { RUNTIME_ENVIRONMENT: 'local-sandbox' }])(
  'the environment %j is completed from the running stack',
  (given) => {
    expect(completeEnvironment(given, findStack)).toEqual({
      RUNTIME_ENVIRONMENT: 'local-sandbox',
      DATABASE_URL: STACK.databaseUrl,
      TEMPORAL_ADDRESS: STACK.temporalAddress,
    });
  },
);

test('a variable that is set is not replaced by that of the running stack', () => {
  expect(completeEnvironment({ TEMPORAL_ADDRESS: '10.0.0.1:7233', LOG_LEVEL: 'warn' }, findStack)).toMatchObject({
    TEMPORAL_ADDRESS: '10.0.0.1:7233',
    LOG_LEVEL: 'warn',
    DATABASE_URL: STACK.databaseUrl,
  });
});
