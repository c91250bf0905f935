/** The Temporal worker: the same call in production and in tests. */
import { NativeConnection, type NativeConnectionOptions, Worker } from '@temporalio/worker';
import type { Activities } from '../activities/index.ts';
import type { Config } from '../config.ts';
import { TASK_QUEUE } from '../workflows/contract.ts';
import { workflowBundle } from './bundle.ts';

/** Activities under way get this long to finish when the process is told to stop. */
const SHUTDOWN_GRACE_MS = 15_000;
const SHUTDOWN_FORCE_MS = 25_000;
const CACHED_WORKFLOWS_MAX = 500;
const CONCURRENT_ACTIVITIES_MAX = 50;
const CONCURRENT_LOCAL_ACTIVITIES_MAX = 50;

export type RunningWorker = { readonly worker: Worker; close(): Promise<void> };

export async function createWorker(config: Pick<Config, 'temporal'>, activities: Activities): Promise<RunningWorker> {
  const { connectionOptions, namespace = 'default' } = config.temporal;
  const connection = await NativeConnection.connect(connectionOptions as NativeConnectionOptions);
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: TASK_QUEUE,
    workflowBundle: await workflowBundle(),
    activities,
    shutdownGraceTime: SHUTDOWN_GRACE_MS,
    shutdownForceTime: SHUTDOWN_FORCE_MS,
    maxCachedWorkflows: CACHED_WORKFLOWS_MAX,
    maxConcurrentActivityTaskExecutions: CONCURRENT_ACTIVITIES_MAX,
    maxConcurrentLocalActivityExecutions: CONCURRENT_LOCAL_ACTIVITIES_MAX,
  });
  return { worker, close: () => connection.close() };
}
