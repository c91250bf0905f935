/**
 * Temporal for tests. `startTimeSkipping` gives a file its own clock, which jumps when a test says so: a day-long window
 * takes milliseconds and no test sleeps. `devServer` gives a file its own namespace on the run's real server, for what
 * the time-skipping server cannot do: visibility, schedules, deletion.
 */
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { z } from 'zod';
import type { Activities } from '../../activities/index.ts';
import { createWorker } from '../../worker/worker.ts';
import { type DELIVERY_TASK_QUEUE, SEARCH_ATTRIBUTES, TASK_QUEUE } from '../../workflows/contract.ts';
import { sharedResource } from './resource.ts';

/** INDEXED_VALUE_TYPE_KEYWORD of the server's interface. */
const KEYWORD = 2;

const SERVER_ATTEMPTS = 5;
const RETENTION_MS = 86_400_000;

export type TimeSkipping = {
  /** Never the environment's own client, whose awaited results move the clock on their own, by years if need be. */
  readonly client: Client;
  readonly address: string;
  readonly namespace: string;
  /** Activities set here win over the base ones; delete one, or call `restore`, to have the base one back. */
  readonly override: Partial<Activities>;
  readonly restore: () => void;
  /** Moves the clock by so much. Wait for the state you expect before, or the workflow may not have set its timer yet. */
  readonly advance: (ms: number) => Promise<void>;
  /** The clock of the workflows, in milliseconds since the epoch. */
  readonly now: () => Promise<number>;
  readonly teardown: () => Promise<void>;
};

/**
 * A time-skipping server and one worker for a whole file: activities are swapped between tests, since a worker per test
 * costs a third of a second. An error that is no ApplicationFailure fails the workflow at once instead of retrying its
 * task for ever. Call `teardown` in `afterAll`.
 *
 * @param base the activities a test meets unless it overrides them
 */
export async function startTimeSkipping(
  base: Activities,
  taskQueue: typeof TASK_QUEUE | typeof DELIVERY_TASK_QUEUE = TASK_QUEUE,
): Promise<TimeSkipping> {
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
    config: workerConfig({ address: environment.address, namespace }),
    connection: environment.nativeConnection,
    activities: swappable(base, override),
    queues: [taskQueue],
    bundle,
    workflowFailureErrorTypes: { '*': ['Error'] },
  });
  const running = worker.run();
  return {
    client: new Client({ connection: environment.connection, namespace }),
    address: environment.address,
    namespace,
    override,
    restore: () => {
      for (const name of Object.keys(override)) Reflect.deleteProperty(override, name);
    },
    advance: (ms) => environment.sleep(ms),
    now: () => environment.currentTimeMs(),
    teardown: async () => {
      worker.shutdown();
      await running;
      await environment.teardown();
    },
  };
}

/** The run's development server. The first caller waits until it has started. */
export const testDevServer = () => sharedResource('dev-server', z.object({ address: z.string() }));

/**
 * A fresh namespace, with the search attributes, on the development server all files share. Clocks are real there.
 * Call `close` in `afterAll`.
 */
export async function devServer() {
  installQuietRuntime();
  const { address } = await testDevServer();
  const namespace = `test-${randomUUID()}`;
  const connection = await Connection.connect({ address });
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs(RETENTION_MS),
  });
  await registerSearchAttributes(connection, namespace);
  return { address, namespace, client: new Client({ connection, namespace }), close: () => connection.close() };
}

/** The SDK gives the server five seconds to come up, which a busy machine may need more than once. */
async function createTimeSkipping(program: string): Promise<TestWorkflowEnvironment> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await TestWorkflowEnvironment.createTimeSkipping({
        server: { executable: { type: 'existing-path', path: program } },
      });
    } catch (error) {
      if (attempt === SERVER_ATTEMPTS) throw error;
    }
  }
}

/** Where this run keeps the bundle of the current workflows; built by the first who asks. */
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
});

/** A namespace made a moment ago is not known everywhere in the server yet. */
async function registerSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const searchAttributes = Object.fromEntries(Object.keys(SEARCH_ATTRIBUTES).map((name) => [name, KEYWORD] as const));
  const deadline = Date.now() + 10_000;
  for (;;) {
    try {
      await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

let runtimeInstalled = false;

/** One runtime a process, without signal handlers of its own and silent but for errors. */
function installQuietRuntime(): void {
  if (runtimeInstalled) return;
  runtimeInstalled = true;
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } },
  });
}
