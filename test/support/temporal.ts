/**
 * Temporal for tests. `startTimeSkipping` gives a file a server with its own clock, which a test moves: a window of a
 * day passes in milliseconds. `devServer` gives a file a namespace on the run's real server, for what the
 * time-skipping server cannot do: visibility, schedules, deletion.
 */
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, NativeConnection, type ReplayWorkerOptions, Runtime, Worker } from '@temporalio/worker';
import { vi } from 'vitest';
import { z } from 'zod';
import type { Activities } from '../../activities/index.ts';
import { TASK_QUEUES, type TaskQueue } from '../../domain/task-queue.ts';
import { createWorker } from '../../worker/worker.ts';
import { SEARCH_ATTRIBUTES, TASK_QUEUE } from '../../workflows/contract.ts';
import { stretched } from './patience.ts';
import { sharedResource } from './resource.ts';

/** INDEXED_VALUE_TYPE_KEYWORD in the server's API. */
const KEYWORD = 2;

const SERVER_ATTEMPTS = 5;
const RETENTION_MS = 86_400_000;

export type TimeSkipping = {
  /** Not the environment's own client: awaiting a result on that one moves the clock, even by years. */
  readonly client: Client;
  /** Activities that replace the base ones. Delete one, or call `restore`, to use the base one again. */
  readonly override: Partial<Activities>;
  readonly restore: () => void;
  /** Moves the clock forward. First wait for the expected state: the workflow may not have set its timer yet. */
  readonly advance: (ms: number) => Promise<void>;
  /** The clock of the workflows, in milliseconds since the epoch. */
  readonly now: () => Promise<number>;
  readonly teardown: () => Promise<void>;
};

/**
 * A time-skipping server and one worker for a whole file. Tests replace activities, because a worker for each test
 * would cost a third of a second. An error other than ApplicationFailure fails the workflow at once; otherwise its
 * task would be retried without end. Call `teardown` after the last test.
 *
 * @param base the activities, unless a test replaces them
 */
export async function startTimeSkipping(base: Activities, taskQueue: TaskQueue = TASK_QUEUE): Promise<TimeSkipping> {
  installQuietRuntime();
  const [{ program }, bundle] = await Promise.all([
    sharedResource('test-server', z.object({ program: z.string() })),
    sharedResource('workflow-bundle', z.object({ codePath: z.string() })),
  ]);
  const environment = await createTimeSkipping(program);
  const namespace = environment.namespace ?? 'default';
  await registerSearchAttributes(environment.connection, namespace);
  const override: Partial<Activities> = {};
  const worker = await createWorker({
    config: { ...workerConfig({ address: environment.address, namespace }), workerQueues: [taskQueue] },
    connection: environment.nativeConnection,
    activities: swappable(base, override),
    bundle,
    debugMode: true,
    workflowFailureErrorTypes: { '*': ['Error'] },
  });
  const running = worker.run();
  return {
    client: new Client({ connection: environment.connection, namespace }),
    override,
    restore: () => {
      for (const name of Object.keys(override)) Reflect.deleteProperty(override, name);
    },
    advance: (ms) => environment.sleep(ms),
    now: () => environment.currentTimeMs(),
    teardown: async () => {
      worker.shutdown();
      await running;
      forget(environment.nativeConnection);
      await environment.teardown();
    },
  };
}

/** The run's development server. The first caller waits until it has started. */
export const testDevServer = () => sharedResource('dev-server', z.object({ address: z.string() }));

/**
 * A new namespace with the search attributes, or this one of before, on the development server that all files share.
 * Its clock is the real one. Call `close` after the last test.
 */
export async function devServer(existing?: string) {
  installQuietRuntime();
  const { address } = await testDevServer();
  const namespace = existing ?? `test-${randomUUID()}`;
  const connection = await Connection.connect({ address });
  if (existing === undefined) {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs(RETENTION_MS),
    });
    await registerSearchAttributes(connection, namespace);
  }
  return { address, namespace, client: new Client({ connection, namespace }), close: () => connection.close() };
}

/** A worker's connection to the development server that all files share. Close it after the worker. */
export async function workerConnection(): Promise<{ connection: NativeConnection; close(): Promise<void> }> {
  const { address } = await testDevServer();
  const connection = await NativeConnection.connect({ address });
  return {
    connection,
    close: async () => {
      forget(connection);
      await connection.close();
    },
  };
}

/** The SDK leaves this storage enabled. It would make each later promise of the test process dearer. */
const forget = ({ callContextStorage }: NativeConnection): void => callContextStorage.disable();

/** Replays histories of workflows. @returns those that do not replay, with the reason */
export async function replayFaults(
  options: ReplayWorkerOptions,
  histories: readonly { readonly workflowId: string; readonly history: unknown }[],
): Promise<string[]> {
  installQuietRuntime();
  // In debug mode, the default, the SDK would hook each later promise of the test process.
  const quiet = { ...options, debugMode: false };
  const faults: string[] = [];
  let count = 0;
  for await (const { workflowId, error } of Worker.runReplayHistories(quiet, [...histories])) {
    count += 1;
    if (error) faults.push(`${workflowId}: ${error.message}`);
  }
  return count === histories.length ? faults : [...faults, `${histories.length - count} were not replayed`];
}

/** The SDK waits five seconds for the server to start. On a busy machine it may need several attempts. */
async function createTimeSkipping(program: string): Promise<TestWorkflowEnvironment> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await TestWorkflowEnvironment.createTimeSkipping({
        // The SDK passes the port alone: with an option for time skipping, the server's clock would move by itself.
        server: { executable: { type: 'existing-path', path: program } },
      });
    } catch (error) {
      if (attempt === SERVER_ATTEMPTS) throw error;
    }
  }
}

/** The file with the bundle of the current workflows. The first caller waits until it is built. */
export function testWorkflowBundle(): Promise<{ codePath: string }> {
  installQuietRuntime();
  return sharedResource('workflow-bundle', z.object({ codePath: z.string() }));
}

function swappable(base: Activities, override: Partial<Activities>): Activities {
  const call =
    (name: string) =>
    (...args: unknown[]): unknown => {
      const activity: unknown = Reflect.get(override, name) ?? Reflect.get(base, name);
      if (typeof activity !== 'function') throw new TypeError(`The activity ${name} is not a function.`);
      return Reflect.apply(activity, undefined, args);
    };
  return Object.fromEntries(Object.keys(base).map((name) => [name, call(name)])) as Activities;
}

/** The configuration of a worker that serves this namespace: nothing encrypted, no deployment. */
export const workerConfig = ({ address, namespace }: { readonly address: string; readonly namespace: string }) => ({
  temporal: { connectionOptions: { address }, namespace },
  payloadKeys: undefined,
  workerDeployment: undefined,
  workerQueues: TASK_QUEUES,
});

/** Repeated, because a new namespace is not known in the whole server at once. */
async function registerSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const searchAttributes = Object.fromEntries(Object.keys(SEARCH_ATTRIBUTES).map((name) => [name, KEYWORD] as const));
  await vi.waitFor(() => connection.operatorService.addSearchAttributes({ namespace, searchAttributes }), {
    timeout: stretched(10_000),
    interval: 20,
  });
}

let runtimeInstalled = false;

/** Installs the process's one runtime, without signal handlers, logging only errors. */
function installQuietRuntime(): void {
  if (runtimeInstalled) return;
  runtimeInstalled = true;
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } },
  });
}
