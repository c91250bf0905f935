/**
 * The whole service in this process, with a database and a Temporal namespace of its own: real PostgreSQL, real
 * Temporal, real HTTP on a free port.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Socket } from 'node:net';
import { Client } from '@temporalio/client';
import { type DestinationStream, pino } from 'pino';
import type { ActivityDeps } from '../../activities/deps.ts';
import { createActivities } from '../../activities/index.ts';
import { buildApp } from '../../api/app.ts';
import { createChangeListener } from '../../db/change-listener.ts';
import { startLanes } from '../../db/commands/lost-run.ts';
import type { Crash } from '../../domain/crash-point.ts';
import { TASK_QUEUES, type TaskQueue } from '../../domain/task-queue.ts';
import { createApplicantByWorkflow } from '../../process/applicant.ts';
import { type Dispatcher, startDispatcher } from '../../process/dispatcher.ts';
import { createLogger } from '../../process/logger.ts';
import { createLaneReports, createRuns } from '../../process/runs.ts';
import type { Tracing } from '../../process/tracing.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { createWorker, type RunningWorker } from '../../worker/worker.ts';
import { activityDeps } from './activity.ts';
import { createTestApi, type TestApi, type TestApiOptions } from './api.ts';
import { devServer, testWorkflowBundle, workerConfig, workerConnection } from './temporal.ts';

const silent = pino({ level: 'silent' });

export type TestStack = {
  readonly api: TestApi;
  readonly baseUrl: string;
  readonly temporal: Client;
  readonly namespace: string;
  readonly dispatcher: Dispatcher;
  startWorker(): Promise<void>;
  stopWorker(): Promise<void>;
  /** Ends the connection of the request that is being answered, as the death of the API does. */
  breakConnection(): void;
  close(): Promise<void>;
};

export type StackOptions = {
  /** That of an earlier stack; by default a new one. */
  readonly namespace?: string | undefined;
  readonly worker?: boolean;
  /** Also serves the queue of deliveries, which most tests do not need. */
  readonly deliveries?: boolean;
  readonly activities?: Partial<ActivityDeps>;
  /** The runtime environment, the configuration and the database. */
  readonly api?: Pick<TestApiOptions, 'runtime' | 'config' | 'database'>;
  /** Where the API, the dispatcher and the worker log; by default they are silent. */
  readonly logTo?: DestinationStream;
  /** Is called at the crash points of the API, the dispatcher and the worker. */
  readonly crash?: Crash;
  /** Traces the API, the dispatcher and the worker. */
  readonly tracing?: Tracing;
};

export async function startStack(options: StackOptions = {}): Promise<TestStack> {
  const temporal = await devServer(options.namespace);
  const { tracing, logTo, crash } = options;
  const logOf = (name: string) => (logTo ? createLogger({ level: 'info', name }, logTo) : silent);
  let dispatcher: Dispatcher | undefined;
  const client = new Client({
    connection: temporal.client.connection,
    namespace: temporal.namespace,
    interceptors: { workflow: tracing?.client ?? [] },
  });
  const api = await createTestApi({
    ...options.api,
    deps: {
      dispatcher: { nudge: () => dispatcher?.nudge() },
      createApplicant: createApplicantByWorkflow({ client, runbookUrl: undefined, log: logOf('api') }),
      requestTracing: tracing?.requests,
      crash,
    },
  });
  dispatcher = startDispatcher({
    db: api.connection.db,
    client,
    log: logOf('dispatcher'),
    traceDispatch: tracing?.traceDispatch,
    crash,
  });
  const app = await buildApp(api.deps, logOf('api'));
  const connections = new AsyncLocalStorage<Socket>();
  app.server.prependListener('request', ({ socket }) => connections.enterWith(socket));
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const workerQueues: readonly TaskQueue[] = options.deliveries ? TASK_QUEUES : ['settlement'];
  let worker:
    | { instance: RunningWorker; running: Promise<void>; stopping: AbortController; close(): Promise<void> }
    | undefined;
  const deliveriesDue = createChangeListener(api.listenUrl, 'deliveries_due', () => undefined);

  const startWorker = async (): Promise<void> => {
    const stopping = new AbortController();
    const deps = {
      ...activityDeps(api, baseUrl, dispatcher),
      crash,
      log: logOf('worker'),
      runs: createRuns(temporal.client),
      reportLane: createLaneReports(temporal.client),
      deliveriesDue,
      stopping: stopping.signal,
      ...options.activities,
    };
    const activities = createActivities({
      ...deps,
      guardedHttp: tracing?.traceHttp(deps.guardedHttp) ?? deps.guardedHttp,
    });
    const bundle = tracing ? await workflowBundle({ traced: true }) : await testWorkflowBundle();
    const config = { ...workerConfig(temporal), workerQueues };
    const { connection, close } = await workerConnection();
    const instance = await createWorker({ config, activities, tracing, bundle, connection, debugMode: true });
    worker = { instance, running: instance.run(), stopping, close };
    if (options.deliveries) await startLanes({ ...deps, crash: undefined }, 'test');
  };
  const stopWorker = async (): Promise<void> => {
    worker?.stopping.abort();
    worker?.instance.shutdown();
    await worker?.running;
    await worker?.close();
    worker = undefined;
  };
  if (options.worker ?? true) await startWorker();
  return {
    api,
    baseUrl,
    temporal: temporal.client,
    namespace: temporal.namespace,
    dispatcher,
    startWorker,
    stopWorker,
    breakConnection: () => connections.getStore()?.destroy(),
    close: async () => {
      await app.close();
      // Each storage that is not disabled makes each later promise of this test process dearer.
      connections.disable();
      await stopWorker();
      await dispatcher?.stop();
      await deliveriesDue.close();
      await temporal.close();
      await api.close();
    },
  };
}
