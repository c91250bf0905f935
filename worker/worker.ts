/**
 * The Temporal workers of a process: one for settlements and what belongs to them, one for deliveries, whose requests
 * may hang for as long as subscribers please without taking a place from the other. The same call in production and in tests.
 */
import {
  NativeConnection,
  type NativeConnectionOptions,
  Worker,
  type WorkerOptions,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { Activities } from '../activities/index.ts';
import type { Config } from '../config.ts';
import { dataConverterOf } from '../process/payload-codec.ts';
import type { Tracing } from '../process/tracing.ts';
import { DELIVERY_TASK_QUEUE, TASK_QUEUE } from '../workflows/contract.ts';
import { workflowBundle } from './bundle.ts';

/** Activities under way get this long to finish when the process is told to stop. */
const SHUTDOWN_GRACE_MS = 15_000;
const SHUTDOWN_FORCE_MS = 25_000;
const CACHED_WORKFLOWS_MAX = 500;
const CONCURRENT_ACTIVITIES_MAX = 50;
const CONCURRENT_LOCAL_ACTIVITIES_MAX = 50;
/** A request that hangs costs a socket and no more, so there may be many; a subscription has four of them at most. */
const CONCURRENT_REQUESTS_MAX = 400;

/** What each queue's worker has beside the settings of all. */
export const WORKER_OPTIONS = {
  [TASK_QUEUE]: { maxConcurrentActivityTaskExecutions: CONCURRENT_ACTIVITIES_MAX },
  [DELIVERY_TASK_QUEUE]: { maxConcurrentActivityTaskExecutions: CONCURRENT_REQUESTS_MAX },
} as const satisfies Record<string, Partial<WorkerOptions>>;

export type RunningWorker = {
  /** Ends when every worker has ended; rejects when one ends by itself, after the others were told to stop. */
  run(): Promise<void>;
  /** Tells those that run to stop. */
  shutdown(): void;
  close(): Promise<void>;
};

/** @param bundle the workflows' code; that of this clone unless told */
export async function createWorker(
  config: Pick<Config, 'temporal' | 'payloadKeys' | 'workerDeployment'>,
  activities: Activities,
  tracing?: Tracing,
  bundle?: WorkflowBundleOption,
): Promise<RunningWorker> {
  const { connectionOptions, namespace = 'default' } = config.temporal;
  const connection = await NativeConnection.connect(connectionOptions as NativeConnectionOptions);
  const shared = {
    connection,
    namespace,
    workflowBundle: bundle ?? (await workflowBundle({ traced: tracing !== undefined })),
    activities,
    dataConverter: dataConverterOf(config),
    ...versionOf(config),
    ...tracing?.worker,
  } satisfies Partial<WorkerOptions>;
  const workers = await Promise.all(
    Object.entries(WORKER_OPTIONS).map(([taskQueue, options]) =>
      Worker.create({
        ...shared,
        taskQueue,
        shutdownGraceTime: SHUTDOWN_GRACE_MS,
        shutdownForceTime: SHUTDOWN_FORCE_MS,
        maxCachedWorkflows: CACHED_WORKFLOWS_MAX,
        maxConcurrentLocalActivityExecutions: CONCURRENT_LOCAL_ACTIVITIES_MAX,
        ...options,
      }),
    ),
  );
  const shutdown = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  return {
    run: async () => {
      const ends = await Promise.allSettled(workers.map((worker) => worker.run().finally(shutdown)));
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed) throw failed.reason;
    },
    shutdown,
    close: () => connection.close(),
  };
}

/**
 * What a worker of a deployment says of itself: Temporal then gives it work only once its version is promoted. Runs move
 * to the promoted version at their next step, since they last for weeks and replay under `patched()`; pinned ones would
 * keep every old version running for as long.
 */
const versionOf = ({
  workerDeployment: version,
}: Pick<Config, 'workerDeployment'>): Pick<WorkerOptions, 'workerDeploymentOptions'> =>
  version === undefined
    ? {}
    : { workerDeploymentOptions: { version, useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' } };
