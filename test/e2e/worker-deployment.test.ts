/** Old and new builds of the worker side by side, over settlements that wait: with versions and without. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleOption } from '@temporalio/worker';
import { eq } from 'drizzle-orm';
import { test as base, expect } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import { auditEntries, certificates } from '../../db/schema/index.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { runOps } from '../../ops/main.ts';
import { createWorker, type RunningWorker } from '../../worker/worker.ts';
import { activityDeps } from '../support/activity.ts';
import { TEST_KEYS } from '../support/api.ts';
import { FILE } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import { createRecipient, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { startStack } from '../support/stack.ts';
import { testDevServer, testWorkflowBundle, workerConfig } from '../support/temporal.ts';

const ACT = ['--operator', 'ana', '--note', 'release of the day', '--yes'];
const DEPLOYMENT = 'settlement-worker';
const REGISTERED_TIMEOUT_MS = 60_000;

/** A build of the worker that runs. */
type Build = { stop(): Promise<void> };

/** Each test has a stack without a worker, and starts builds of the worker itself. */
const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('bundles', FILE, async ({}) => ({
    current: await testWorkflowBundle(),
    next: await bundleWorkflowCode({
      workflowsPath: path.join(import.meta.dirname, '../fixtures/next-workflows.ts'),
      logger: new DefaultLogger('ERROR'),
    }),
  }))
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('stack', async ({}, { onCleanup }) => {
    const stack = await startStack({ worker: false });
    onCleanup(stack.close);
    return stack;
  })
  .extend('startBuild', async ({ stack }, { onCleanup }) => {
    const { address } = await testDevServer();
    const builds: Build[] = [];
    onCleanup(async () => void (await Promise.all(builds.map((build) => build.stop()))));
    return async (bundle: WorkflowBundleOption, buildId?: string): Promise<Build> => {
      const workerDeployment = buildId === undefined ? undefined : { deploymentName: DEPLOYMENT, buildId };
      const worker = await createWorker({
        config: { ...workerConfig({ address, namespace: stack.namespace }), workerDeployment },
        activities: createActivities(activityDeps(stack.api, stack.baseUrl, stack.dispatcher)),
        bundle,
      });
      const build = runBuild(worker);
      builds.push(build);
      return build;
    };
  })
  .extend('operator', ({ stack }) => {
    const printed: string[] = [];
    const clock = { aheadMs: 0 };
    const ops = (...args: string[]) =>
      runOps(
        {
          runtime: 'local-sandbox',
          db: stack.api.connection.db,
          keys: TEST_KEYS,
          workerDeployment: { deploymentName: DEPLOYMENT, buildId: 'of-the-operator' },
          client: () => stack.temporal,
          now: () => new Date(Date.now() + clock.aheadMs),
          print: (line) => printed.push(line),
          warn: (line) => printed.push(line),
        },
        ['deployment', ...args],
      );
    return {
      ops,
      clock,
      printed,
      /** What `ops deployment show` prints. */
      shown: async (...options: string[]): Promise<string> => {
        const before = printed.length;
        await ops('show', ...options);
        return printed.slice(before).join('\n');
      },
      /** Retries: Temporal knows a worker only a moment after it has started. */
      untilDone: (...args: string[]) => expect.poll(() => ops(...args), { timeout: REGISTERED_TIMEOUT_MS }).toBe(0),
    };
  })
  .extend('world', async ({ stack }) => {
    const partner = await stack.api.createCaller();
    const accept = async (): Promise<string> => {
      const body = settleBody(await createRecipient(stack.api, partner), { card_token: 'tok_manual' });
      const headers = { 'idempotency-key': randomUUID() };
      return jsonOf(await stack.api.call(partner, 'POST', '/v2/settle', body, headers)).settlement_id;
    };
    const until = (id: string, status: string) => untilStatus(stack.api, partner, id, status);
    return {
      accept,
      untilStatus: until,
      read: (id: string) => readSettlement(stack.api, partner, id),
      /** A settlement that waits for its money. */
      acceptUntilItWaits: async (): Promise<string> => {
        const id = await accept();
        await until(id, 'awaiting_funds');
        return id;
      },
      pay: async (id: string): Promise<void> => {
        const sent = await stack.api.call(partner, 'POST', `/v2/test-helpers/settlements/${id}/events`, {
          event: 'collection_succeeded',
        });
        expect(sent.statusCode, sent.body).toBe(202);
        await until(id, 'settled');
      },
      /** The steps of the next build that the finished run took. No workflow task of the run may have failed. */
      stepsOf: async (id: string): Promise<string[]> => {
        const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(id));
        await handle.result();
        const history = await handle.fetchHistory();
        expect(history.events?.filter((event) => event.workflowTaskFailedEventAttributes)).toEqual([]);
        return ['next-opening', 'next-closing'].filter((step) => historyText(history).includes(step));
      },
    };
  });
test.beforeAll(({ bundles: _ }) => undefined);

function runBuild(worker: RunningWorker): Build {
  const ended = worker.run();
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    worker.shutdown();
    await ended;
    await worker.close();
  };
  return {
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

test('with versions, the promoted build serves: waiting settlements continue in it, none fails, each settles once', {
  timeout: 180_000,
}, async ({ world, operator, startBuild, bundles, stack }) => {
  const old = await startBuild(bundles.current, 'a');
  const early = await world.accept();
  expect(await operator.ops('promote', 'b', ...ACT)).toBe(1);
  expect(operator.printed.join('\n')).toContain('No worker of b polls workflows of settlement');
  await operator.untilDone('promote', 'a', ...ACT);
  await world.untilStatus(early, 'awaiting_funds');
  const [second, third] = [await world.acceptUntilItWaits(), await world.acceptUntilItWaits()];

  await startBuild(bundles.next, 'b');
  await expect.poll(operator.shown, { timeout: REGISTERED_TIMEOUT_MS }).toContain('b: has workers');
  expect(await operator.shown()).toContain(`${DEPLOYMENT}: a serves`);
  await world.pay(early);
  expect(await world.stepsOf(early)).toEqual([]);

  operator.clock.aheadMs = 91_000;
  expect(
    await operator.ops('promote', 'b', ...ACT),
    'a worker that has not polled for 90 seconds counts as stopped',
  ).toBe(1);
  operator.clock.aheadMs = 0;
  expect(await operator.ops('ramp', 'b', '0', ...ACT)).toBe(0);
  expect(await operator.shown()).toContain(`${DEPLOYMENT}: a serves, b 0 % of it`);
  expect(JSON.parse(await operator.shown('--json'))).toMatchObject({
    deployment: DEPLOYMENT,
    current_build_id: 'a',
    ramping: { build_id: 'b', percent: 0 },
    versions: expect.arrayContaining([expect.objectContaining({ build_id: 'a', unpolled: [] })]),
  });
  expect(await operator.ops('promote', 'b', ...ACT)).toBe(0);
  await world.pay(second);
  await old.stop();
  await world.pay(third);
  const fresh = await world.acceptUntilItWaits();
  await world.pay(fresh);
  expect([await world.stepsOf(second), await world.stepsOf(third), await world.stepsOf(fresh)]).toEqual([
    ['next-closing'],
    ['next-closing'],
    ['next-opening', 'next-closing'],
  ]);
  for (const id of [early, second, third, fresh]) {
    expect(
      await stack.api.connection.db.select().from(certificates).where(eq(certificates.settlementId, id)),
    ).toHaveLength(1);
    expect((await world.read(id)).exceptions).toEqual([]);
  }
  expect(await operator.ops('unset', ...ACT)).toBe(1);
  expect(operator.printed.at(-1)).toContain('No worker without a version polls workflows of settlement');
  const entries = await stack.api.connection.db.select().from(auditEntries);
  expect(
    entries.map(({ orgId, objectId, action, operator, note }) => [orgId, objectId, action, operator, note]),
  ).toEqual([
    [null, `${DEPLOYMENT}:a`, 'deployment_promote', 'ana', 'release of the day'],
    [null, `${DEPLOYMENT}:b`, 'deployment_ramp', 'ana', '0 %: release of the day'],
    [null, `${DEPLOYMENT}:b`, 'deployment_promote', 'ana', 'release of the day'],
  ]);
});

test('without versions, both builds serve one queue, and settlements of the old build settle in either', {
  timeout: 120_000,
}, async ({ world, startBuild, bundles }) => {
  const old = await startBuild(bundles.current);
  const [first, second] = [await world.acceptUntilItWaits(), await world.acceptUntilItWaits()];
  await startBuild(bundles.next);
  await world.pay(first);
  await old.stop();
  await world.pay(second);
  await world.stepsOf(first);
  expect(await world.stepsOf(second)).toEqual(['next-closing']);
});
