/** What `deployment` refuses before it asks Temporal. test/e2e/worker-deployment.test.ts runs it against Temporal. */
import { expect } from 'vitest';
import { withDatabase } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';

const test = withDatabase();

const CONFIGURED = { deploymentName: 'settlement', buildId: 'a' };
const ACT = ['--operator', 'ana', '--note', 'why', '--yes'];
const PERCENT = '<percent> must be a whole number from 0 to 100.';

test.for<[string, string[], string]>([
  ['no command', [], 'Usage: npm run ops -- deployment'],
  ['an unknown command', ['demote', 'a', ...ACT], "Unknown command 'demote'."],
  ['promote without a build id', ['promote', ...ACT], '<build-id> is required.'],
  ['promote without an operator', ['promote', 'a', '--note', 'why'], '--operator is required.'],
  ['promote without a note', ['promote', 'a', '--operator', 'ana'], '--note is required.'],
  ['unset without an operator', ['unset', '--note', 'why'], '--operator is required.'],
  ['ramp without a percentage', ['ramp', 'a', ...ACT], '<percent> is required.'],
  ['ramp by 101 %', ['ramp', 'a', '101', ...ACT], PERCENT],
  ['ramp by half a percent', ['ramp', 'a', '0.5', ...ACT], PERCENT],
  ['show with an argument', ['show', 'a'], "Too many arguments for 'show'."],
])('exits with 2 for %s, and does not ask Temporal', async ([, args, fault], { connection }) => {
  const ops = createOps(connection.db, { workerDeployment: CONFIGURED });
  const { exitCode, warned } = await ops('deployment', ...args);
  expect(exitCode).toBe(2);
  expect(warned[0]).toContain(fault);
});

test('exits with 78 when no deployment is configured, and does not ask Temporal', async ({ connection }) => {
  const { exitCode, warned } = await createOps(connection.db)('deployment', 'show');
  expect(exitCode).toBe(78);
  expect(warned).toEqual(['WORKER_DEPLOYMENT_NAME and WORKER_BUILD_ID are not set: the workers have no version.']);
});
