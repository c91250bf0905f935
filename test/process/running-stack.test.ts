/** Which stack a command without an environment is for. */
import { expect, test } from 'vitest';
import { completeEnvironment, type StackAddresses } from '../../process/running-stack.ts';

const STACK: StackAddresses = {
  apiUrl: 'http://127.0.0.1:3000',
  databaseUrl: 'postgresql://settlement:secret@127.0.0.1:5433/settlement',
  temporalAddress: '127.0.0.1:7234',
};
const running = (): StackAddresses => STACK;
const asked = (): never => {
  throw new Error('nobody may look for a stack');
};

test.each([
  ['a database', { DATABASE_URL: 'postgresql://db.example/settlement' }],
  [
    'a database of the local sandbox',
    { RUNTIME_ENVIRONMENT: 'local-sandbox', DATABASE_URL: 'postgresql://127.0.0.1/other' },
  ],
  ['a remote runtime, whose database is missing', { RUNTIME_ENVIRONMENT: 'production' }],
])('the running stack is not even looked for by an environment that names %s', (_what, given) => {
  expect(completeEnvironment(given, asked)).toEqual(given);
});

test('without a running stack the environment stays as it was given', () => {
  expect(completeEnvironment({ LOG_LEVEL: 'warn' }, () => undefined)).toEqual({ LOG_LEVEL: 'warn' });
});

test.each([{}, { DATABASE_URL: '' }, { RUNTIME_ENVIRONMENT: 'local-sandbox' }])(
  '%j means the running stack',
  (given) => {
    expect(completeEnvironment(given, running)).toEqual({
      RUNTIME_ENVIRONMENT: 'local-sandbox',
      DATABASE_URL: STACK.databaseUrl,
      TEMPORAL_ADDRESS: STACK.temporalAddress,
    });
  },
);

test('what is given wins over the stack', () => {
  expect(completeEnvironment({ TEMPORAL_ADDRESS: '10.0.0.1:7233', LOG_LEVEL: 'warn' }, running)).toMatchObject({
    TEMPORAL_ADDRESS: '10.0.0.1:7233',
    LOG_LEVEL: 'warn',
    DATABASE_URL: STACK.databaseUrl,
  });
});
