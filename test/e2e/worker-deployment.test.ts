/**
 * Old and new builds of the worker side by side, over settlements that wait: with versions and without. The versions
 * are changed by the commands of docs/operations.md.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleOption } from '@temporalio/worker';
import { eq } from 'drizzle-orm';
import { execa } from 'execa';
import { test as base, expect } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import { certificates } from '../../db/schema/index.ts';
import { TASK_QUEUES, type TaskQueue } from '../../domain/task-queue.ts';
import { promotionCommand, type WorkerVersion } from '../../domain/worker-version.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { localDirectory } from '../../process/local/place.ts';
import { findUnservedQueues } from '../../process/pollers.ts';
import { acquireDevServer } from '../../scripts/stack/binary.ts';
import { createWorker, type RunningWorker } from '../../worker/worker.ts';
import { activityDeps } from '../support/activity.ts';
import { FILE } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import { createRecipient, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { stretched } from '../support/patience.ts';
import { readSource } from '../support/source.ts';
import { startStack } from '../support/stack.ts';
import { testDevServer, testWorkflowBundle, workerConfig } from '../support/temporal.ts';

const DEPLOYMENT = 'settlement-worker';

/** The command of docs/operations.md that has all these words. */
function commandWith(...words: string[]): string {
  const commands = readSource('docs/operations.md').match(/^temporal worker deployment .+$/gm) ?? [];
  const found = commands.filter((line) => words.every((word) => line.includes(word)));
  expect(found, words.join(' ')).toHaveLength(1);
  return found[0] ?? '';
}
const DESCRIBE = commandWith('describe');
const PROMOTE = commandWith('set-current-version', '--build-id');
const RAMP = commandWith('set-ramping-version');
const UNSET = commandWith('set-current-version', '--unversioned');

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
    return async (
      bundle: WorkflowBundleOption,
      buildId?: string,
      workerQueues: readonly TaskQueue[] = ['settlement'],
    ): Promise<Build> => {
      const workerDeployment = buildId === undefined ? undefined : { deploymentName: DEPLOYMENT, buildId };
      const worker = await createWorker({
        config: { ...workerConfig({ address, namespace: stack.namespace }), workerDeployment, workerQueues },
        activities: createActivities(activityDeps(stack.api, stack.baseUrl, stack.dispatcher)),
        bundle,
        debugMode: true,
      });
      const build = runBuild(worker);
      builds.push(build);
      return build;
    };
  })
  .extend('operator', async ({ stack }, { onCleanup }) => {
    const { address } = await testDevServer();
    const folder = await mkdtemp(path.join(os.tmpdir(), 'temporal-cli-'));
    onCleanup(() => rm(folder, { recursive: true }));
    const program = await acquireDevServer({ env: process.env, binDirectory: path.join(localDirectory, 'bin') });
    await symlink(program, path.join(folder, 'temporal'));
    /** Runs a command of the page. */
    const run = async (command: string, buildId: string) => {
      const env = {
        PATH: `${folder}${path.delimiter}${process.env['PATH']}`,
        TEMPORAL_ADDRESS: address,
        TEMPORAL_NAMESPACE: stack.namespace,
        WORKER_DEPLOYMENT_NAME: DEPLOYMENT,
        WORKER_BUILD_ID: buildId,
      };
      return await execa('bash', ['-c', command], { env, reject: false, all: true });
    };
    return {
      run,
      /** Retries: Temporal knows a worker only a moment after it has started. */
      untilDone: (command: string, buildId: string) =>
        expect.poll(async () => (await run(command, buildId)).exitCode, { timeout: stretched(60_000) }).toBe(0),
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

test('the promoted build serves with versions: waiting settlements continue in it, none fails, each settles once', async ({
  world,
  operator,
  startBuild,
  bundles,
  stack,
}) => {
  const old = await startBuild(bundles.current, 'a');
  const early = await world.accept();
  await operator.untilDone(PROMOTE, 'a');
  await world.untilStatus(early, 'awaiting_funds');
  const [second, third] = [await world.acceptUntilItWaits(), await world.acceptUntilItWaits()];
  expect((await operator.run(PROMOTE, 'b')).exitCode, 'a version without workers cannot serve').not.toBe(0);

  await startBuild(bundles.next, 'b');
  await operator.untilDone(RAMP.replace(/--percentage \d+/, '--percentage 0'), 'b');
  const { stdout } = await operator.run(DESCRIBE, '');
  expect(stdout).toMatch(/CurrentVersionBuildID +a\n/);
  expect(stdout).toMatch(/RampingVersionBuildID +b\n/);
  await world.pay(early);
  expect(await world.stepsOf(early)).toEqual([]);

  await operator.untilDone(PROMOTE, 'b');
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
});

test('operators see which version nobody serves, and workers without a version serve again after the reversing command', async ({
  world,
  stack,
  operator,
  startBuild,
  bundles,
}) => {
  const versioned = await startBuild(bundles.current, 'a', TASK_QUEUES);
  const build = { deploymentName: DEPLOYMENT, buildId: 'a' };
  const unserved = (inMs = 0) => findUnservedQueues(stack.temporal, new Date(Date.now() + inMs));
  const queues = (promoted: WorkerVersion | undefined, polling: readonly WorkerVersion[]) =>
    TASK_QUEUES.map((taskQueue) => ({ taskQueue, promoted, polling }));
  await expect.poll(unserved, { timeout: stretched(60_000) }).toEqual(queues(undefined, [build]));
  const [queue = expect.unreachable()] = await unserved();
  await operator.untilDone(promotionCommand(queue), '');
  const waiting = await world.acceptUntilItWaits();
  expect(await unserved()).toEqual([]);
  expect(await unserved(80_000), 'as after the death of all workers').toEqual(queues(build, []));
  await startBuild(bundles.next);
  await operator.untilDone(UNSET, '');
  const fresh = await world.acceptUntilItWaits();
  await world.pay(fresh);
  await versioned.stop();
  await world.pay(waiting);
  expect(await world.stepsOf(fresh)).toEqual(['next-opening', 'next-closing']);
  expect(await world.stepsOf(waiting)).toEqual(['next-closing']);
});

test('a worker of one queue settles, and leaves deliveries to the workers of the other queue', async ({
  stack,
  bundles,
  startBuild,
  world,
}) => {
  const unserved = async () => (await findUnservedQueues(stack.temporal, new Date())).map(({ taskQueue }) => taskQueue);
  await startBuild(bundles.current);
  await world.acceptUntilItWaits();
  expect(await unserved()).toEqual(['webhook-delivery']);
  await startBuild(bundles.current, undefined, ['webhook-delivery']);
  await expect.poll(unserved, { timeout: stretched(60_000) }).toEqual([]);
});
