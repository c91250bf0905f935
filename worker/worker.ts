/**
 * The Temporal workers of a process: one for settlements and what belongs to them, one for deliveries. Deliveries have
 * their own, so that a subscriber that hangs takes no slot from a settlement. Production and tests make them by the
 * same call.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  NativeConnection,
  type NativeConnectionOptions,
  Worker,
  type WorkerOptions,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import { type Activities, ROUNDS_MAX } from '../activities/index.ts';
import { HEARTBEAT_MS } from '../activities/long-activity.ts';
import type { Config } from '../config/load.ts';
import type { TaskQueue } from '../domain/task-queue.ts';
import { dataConverterOf } from '../process/payload-codec.ts';
import type { Tracing } from '../process/tracing.ts';
import { workflowBundle } from './bundle.ts';

/** When the process stops, running activities get this long to finish. */
const SHUTDOWN_GRACE_MS = 15_000;
const SHUTDOWN_FORCE_MS = 25_000;
/** How often it is asked whether a worker has failed, and how long it may take to end by itself then. */
const FAILED_POLL_MS = 1_000;
const FAILED_GRACE_MS = 5_000;
const CACHED_WORKFLOWS_MAX = 500;
const CONCURRENT_ACTIVITIES_MAX = 50;
const CONCURRENT_LOCAL_ACTIVITIES_MAX = 50;
/** Of the queue of deliveries, for lanes. The alert `NoTaskSlots` has this number too. */
const LANE_SLOTS = 100;

/** The settings in which the queues' workers differ. */
const QUEUES: Readonly<Record<TaskQueue, Partial<WorkerOptions>>> = {
  settlement: { maxConcurrentActivityTaskExecutions: CONCURRENT_ACTIVITIES_MAX },
  'webhook-delivery': { maxConcurrentActivityTaskExecutions: ROUNDS_MAX + LANE_SLOTS },
};

export type WorkerDeps = {
  readonly config: Pick<Config, 'temporal' | 'payloadKeys' | 'workerDeployment' | 'workerQueues'>;
  readonly activities: Activities;
  readonly tracing?: Tracing | undefined;
  /** A connection that the caller keeps and closes. Without it, the worker opens its own as `config.temporal` says. */
  readonly connection?: NativeConnection;
  /** The workflows' code; without it, that of this clone. */
  readonly bundle?: WorkflowBundleOption;
  /** Errors that fail a workflow at once; by default they fail a workflow task, which Temporal repeats. */
  readonly workflowFailureErrorTypes?: NonNullable<WorkerOptions['workflowFailureErrorTypes']>;
  /** Runs workflows on the main thread, without a time limit: a thread takes a test half a second to start. */
  readonly debugMode?: boolean;
};

export type RunningWorker = {
  /** Resolves when every worker has ended. When one fails, it stops the others and rejects. */
  run(): Promise<void>;
  /** Whether every worker takes work. */
  isPolling(): boolean;
  /** Starts the shutdown of the running workers. */
  shutdown(): void;
  /** Closes the connection, unless it is the caller's. Call it after the workers have ended, or if they never ran. */
  close(): Promise<void>;
};

/** @throws Error when Temporal cannot be reached */
export async function createWorker(deps: WorkerDeps): Promise<RunningWorker> {
  const { config, activities, tracing, workflowFailureErrorTypes, debugMode = false } = deps;
  const { connectionOptions, namespace = 'default' } = config.temporal;
  const connection = deps.connection ?? (await NativeConnection.connect(connectionOptions as NativeConnectionOptions));
  const closeOwn = async (): Promise<void> => {
    if (deps.connection === undefined) await connection.close();
  };
  const workers: Worker[] = [];
  const shutdown = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  /** A worker keeps its threads and its connection until it has run. */
  const endUnrun = async (): Promise<void> => {
    const ends = workers.filter((worker) => worker.getState() === 'INITIALIZED').map(runOrFail);
    shutdown();
    await Promise.allSettled(ends);
  };
  try {
    const shared = {
      connection,
      namespace,
      workflowBundle: deps.bundle ?? (await workflowBundle({ traced: tracing !== undefined })),
      activities,
      dataConverter: dataConverterOf(config),
      shutdownGraceTime: SHUTDOWN_GRACE_MS,
      shutdownForceTime: SHUTDOWN_FORCE_MS,
      maxCachedWorkflows: CACHED_WORKFLOWS_MAX,
      maxHeartbeatThrottleInterval: HEARTBEAT_MS,
      maxConcurrentLocalActivityExecutions: CONCURRENT_LOCAL_ACTIVITIES_MAX,
      debugMode,
      ...versionOf(config),
      ...tracing?.worker,
      ...(workflowFailureErrorTypes === undefined ? {} : { workflowFailureErrorTypes }),
    } satisfies Partial<WorkerOptions>;
    for (const taskQueue of config.workerQueues)
      workers.push(await Worker.create({ ...shared, taskQueue, ...QUEUES[taskQueue] }));
  } catch (error) {
    await endUnrun();
    await closeOwn().catch(() => undefined);
    throw error;
  }
  return {
    run: async () => {
      const ends = await Promise.allSettled(workers.map((worker) => runOrFail(worker).finally(shutdown)));
      const failed = ends.find((end) => end.status === 'rejected');
      if (failed) throw failed.reason;
    },
    isPolling: () => workers.every((worker) => worker.getState() === 'RUNNING'),
    shutdown,
    close: async () => {
      await endUnrun();
      await closeOwn();
    },
  };
}

/** Runs until the worker has ended. The SDK's own `run` may never return after the worker has failed. */
async function runOrFail(worker: Worker): Promise<void> {
  const ended = new AbortController();
  const { signal } = ended;
  const untilFailed = async (): Promise<void> => {
    while (worker.getState() !== 'FAILED') await delay(FAILED_POLL_MS, undefined, { signal });
    await delay(FAILED_GRACE_MS, undefined, { signal });
    throw new Error('the worker has failed, and does not end');
  };
  try {
    await Promise.race([worker.run(), untilFailed()]);
  } finally {
    ended.abort();
  }
}

/**
 * The version of a worker that belongs to a deployment. Temporal gives it work only after its version is promoted. Runs
 * move to the promoted version at their next workflow task: they last for weeks and replay under `patched()`, and
 * pinned runs would keep every old version running for weeks too.
 */
const versionOf = ({
  workerDeployment: version,
}: Pick<Config, 'workerDeployment'>): Pick<WorkerOptions, 'workerDeploymentOptions'> =>
  version === undefined
    ? {}
    : { workerDeploymentOptions: { version, useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' } };
