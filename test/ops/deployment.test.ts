/** What of `ops deployment` is refused before anybody is asked; the deeds are in test/e2e/worker-deployment.test.ts. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runOps } from '../../ops/main.ts';
import { createTestApi, TEST_KEYS, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());

const CONFIGURED = { deploymentName: 'settlement', buildId: 'a' };
const ACT = ['--operator', 'ana', '--note', 'why'];

test.each([
  ['nothing', [], CONFIGURED, 'There is no command deployment "".'],
  ['what is not there', ['demote', 'a', ...ACT], CONFIGURED, 'There is no command deployment "demote".'],
  ['promote of nothing', ['promote', ...ACT], CONFIGURED, 'The build id is required.'],
  ['promote by nobody', ['promote', 'a', '--note', 'why'], CONFIGURED, '--operator must be'],
  ['promote without a reason', ['promote', 'a', '--operator', 'ana'], CONFIGURED, '--note is required.'],
  ['unset by nobody', ['unset', '--note', 'why'], CONFIGURED, '--operator must be'],
  ['ramp by how much', ['ramp', 'a', ...ACT], CONFIGURED, 'The percentage must be a whole number from 0 to 100.'],
  [
    'ramp by more than all',
    ['ramp', 'a', '101', ...ACT],
    CONFIGURED,
    'The percentage must be a whole number from 0 to 100.',
  ],
  ['show with an argument', ['show', 'a'], CONFIGURED, 'Too many arguments.'],
  ['show without a deployment', ['show'], undefined, 'WORKER_DEPLOYMENT_NAME and WORKER_BUILD_ID are not set'],
])('%s is refused with 1, and Temporal is not asked', async (_what, args, workerDeployment, fault) => {
  const printed: string[] = [];
  const client = () => {
    throw new Error('Temporal was asked');
  };
  const deps = {
    db: api.connection.db,
    keys: TEST_KEYS,
    workerDeployment,
    client,
    now: () => new Date(),
    print: (line: string) => printed.push(line),
  };
  expect(await runOps({ ...deps, runtime: 'local-sandbox' }, ['deployment', ...args])).toBe(1);
  expect(printed[0]).toContain(fault);
});
