/** Old and new builds of the worker side by side over settlements that wait, with versions and without. */

import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleOption } from '@temporalio/worker';
import { eq } from 'drizzle-orm';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { createActivities } from '../../activities/index.ts';
import { auditEntries, certificates } from '../../db/schema/index.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { runOps } from '../../ops/main.ts';
import { createWorker } from '../../worker/worker.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, TEST_KEYS } from '../support/api.ts';
import { historyText } from '../support/history.ts';
import { createRecipient, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { sharedResource } from '../support/resource.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { testWorkflowBundle, workerConfig } from '../support/temporal.ts';

const ACT = ['--operator', 'ana', '--note', 'release of the day'];
const DEPLOYMENT = 'settlement-worker';
const REGISTERED_TIMEOUT_MS = 60_000;

let address: string;
let current: WorkflowBundleOption;
let next: WorkflowBundleOption;
let stack: TestStack;
let caller: Caller;
let running: { readonly stop: () => Promise<void> }[];
let printed: string[];
let aheadMs: number;

beforeAll(async () => {
  ({ address } = await sharedResource('dev-server', z.object({ address: z.string() })));
  current = await testWorkflowBundle();
  next = await bundleWorkflowCode({
    workflowsPath: path.join(import.meta.dirname, '../fixtures/next-workflows.ts'),
    logger: new DefaultLogger('ERROR'),
  });
});
beforeEach(async () => {
  running = [];
  printed = [];
  aheadMs = 0;
  stack = await startStack({ worker: false });
  caller = await stack.api.createCaller();
});
afterEach(async () => {
  await Promise.all(running.map(({ stop }) => stop()));
  await stack.close();
});

async function startBuild(bundle: WorkflowBundleOption, buildId?: string) {
  const workerDeployment = buildId === undefined ? undefined : { deploymentName: DEPLOYMENT, buildId };
  const worker = await createWorker({
    config: { ...workerConfig({ address, namespace: stack.namespace }), workerDeployment },
    activities: createActivities(activityDeps(stack.api, stack.baseUrl, stack.dispatcher)),
    bundle,
  });
  const ended = worker.run();
  let stopped = false;
  const stop = async () => {
    if (stopped) return;
    stopped = true;
    worker.shutdown();
    await ended;
    await worker.close();
  };
  running.push({ stop });
  return { stop };
}

const ops = (...args: string[]) =>
  runOps(
    {
      runtime: 'local-sandbox',
      db: stack.api.connection.db,
      keys: TEST_KEYS,
      workerDeployment: { deploymentName: DEPLOYMENT, buildId: 'of-the-operator' },
      client: () => stack.temporal,
      now: () => new Date(Date.now() + aheadMs),
      print: (line) => printed.push(line),
      warn: (line) => printed.push(line),
    },
    ['deployment', ...args],
  );
const shown = async (): Promise<string> => {
  printed = [];
  await ops('show');
  return printed.join('\n');
};
/** A worker that has just started is known a moment later. */
const untilDone = (...args: string[]) => expect.poll(() => ops(...args), { timeout: REGISTERED_TIMEOUT_MS }).toBe(0);

async function accept(): Promise<string> {
  const body = settleBody(await createRecipient(stack, caller), { card_token: 'tok_manual' });
  return jsonOf(await stack.api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': randomUUID() }))
    .settlement_id;
}

async function acceptUntilItWaits(): Promise<string> {
  const id = await accept();
  await untilStatus(stack, caller, id, 'awaiting_funds');
  return id;
}

async function pay(id: string): Promise<void> {
  const sent = await stack.api.call(caller, 'POST', `/v2/test-helpers/settlements/${id}/events`, {
    event: 'collection_succeeded',
  });
  expect(sent.statusCode, sent.body).toBe(202);
  await untilStatus(stack, caller, id, 'settled');
}

/** Which steps of the next build the finished run took; and that no step of either failed. */
async function stepsOf(id: string): Promise<string[]> {
  const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(id));
  await handle.result();
  const history = await handle.fetchHistory();
  expect(history.events?.filter((event) => event.workflowTaskFailedEventAttributes)).toEqual([]);
  return ['next-opening', 'next-closing'].filter((step) => historyText(history).includes(step));
}

test('of versions, the promoted one serves: waiting settlements go on in the new build, none fails, each settles once', {
  timeout: 180_000,
}, async () => {
  const old = await startBuild(current, 'a');
  const early = await accept();
  expect(await ops('promote', 'b', ...ACT)).toBe(1);
  expect(printed.join('\n')).toContain('No worker of b polls workflows of settlement');
  await untilDone('promote', 'a', ...ACT);
  await untilStatus(stack, caller, early, 'awaiting_funds');
  const [second, third] = [await acceptUntilItWaits(), await acceptUntilItWaits()];

  await startBuild(next, 'b');
  await expect.poll(shown, { timeout: REGISTERED_TIMEOUT_MS }).toContain('b: has workers');
  expect(await shown()).toContain(`${DEPLOYMENT}: a serves`);
  await pay(early);
  expect(await stepsOf(early)).toEqual([]);

  aheadMs = 91_000;
  expect(await ops('promote', 'b', ...ACT), 'a worker that has not asked for a minute and a half is gone').toBe(1);
  aheadMs = 0;
  expect(await ops('ramp', 'b', '0', ...ACT)).toBe(0);
  expect(await shown()).toContain(`${DEPLOYMENT}: a serves, b 0 % of it`);
  expect(await ops('promote', 'b', ...ACT)).toBe(0);
  await pay(second);
  await old.stop();
  await pay(third);
  const fresh = await acceptUntilItWaits();
  await pay(fresh);
  expect([await stepsOf(second), await stepsOf(third), await stepsOf(fresh)]).toEqual([
    ['next-closing'],
    ['next-closing'],
    ['next-opening', 'next-closing'],
  ]);
  for (const id of [early, second, third, fresh]) {
    expect(
      await stack.api.connection.db.select().from(certificates).where(eq(certificates.settlementId, id)),
    ).toHaveLength(1);
    expect((await readSettlement(stack, caller, id)).exceptions).toEqual([]);
  }
  expect(await ops('unset', ...ACT)).toBe(1);
  expect(printed.at(-1)).toContain('No worker without a version polls workflows of settlement');
  const entries = await stack.api.connection.db.select().from(auditEntries);
  expect(
    entries.map(({ orgId, objectId, action, operator, note }) => [orgId, objectId, action, operator, note]),
  ).toEqual([
    [null, `${DEPLOYMENT}:a`, 'deployment_promote', 'ana', 'release of the day'],
    [null, `${DEPLOYMENT}:b`, 'deployment_ramp', 'ana', '0 %: release of the day'],
    [null, `${DEPLOYMENT}:b`, 'deployment_promote', 'ana', 'release of the day'],
  ]);
});

test('without versions both builds serve one queue, and settlements of the old one settle under either', {
  timeout: 120_000,
}, async () => {
  const old = await startBuild(current);
  const [first, second] = [await acceptUntilItWaits(), await acceptUntilItWaits()];
  await startBuild(next);
  await pay(first);
  await old.stop();
  await pay(second);
  await stepsOf(first);
  expect(await stepsOf(second)).toEqual(['next-closing']);
});
