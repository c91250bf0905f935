/** What is left of the workers of a process when one of them cannot be made, and when they never run. */
import { NativeConnection, Worker } from '@temporalio/worker';
import { expect, test, vi } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { createWorker } from '../../worker/worker.ts';
import { devServer, testWorkflowBundle, workerConfig } from '../support/temporal.ts';

test('when a second worker cannot be made, the first one ends and its connection is closed', async ({
  onTestFinished,
}) => {
  const server = await devServer();
  onTestFinished(server.close);
  const made: Worker[] = [];
  const create = Worker.create.bind(Worker);
  vi.spyOn(Worker, 'create').mockImplementation(async (options) => {
    if (made.length > 0) throw new Error('a second one cannot be made');
    made.push(await create(options));
    return made[0] ?? expect.unreachable();
  });
  const close = vi.spyOn(NativeConnection.prototype, 'close');
  onTestFinished(() => void vi.restoreAllMocks());
  const deps = { config: workerConfig(server), activities: {} as Activities, bundle: await testWorkflowBundle() };
  await expect(createWorker(deps)).rejects.toThrow('a second one cannot be made');
  expect(made.map((worker) => worker.getState())).toEqual(['STOPPED']);
  await expect(close.mock.results[0]?.value).resolves.toBeUndefined();
});

test('a worker that is closed before it runs ends, and so does its connection', async ({ onTestFinished }) => {
  const server = await devServer();
  onTestFinished(server.close);
  const create = vi.spyOn(Worker, 'create');
  onTestFinished(() => void vi.restoreAllMocks());
  const deps = { config: workerConfig(server), activities: {} as Activities, bundle: await testWorkflowBundle() };
  const worker = await createWorker(deps);
  worker.shutdown();
  await expect(worker.close()).resolves.toBeUndefined();
  const made = await Promise.all(create.mock.results.map(({ value }) => value));
  expect(made.map((each: Worker) => each.getState())).toEqual(['STOPPED', 'STOPPED']);
});
