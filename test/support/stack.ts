/**
 * The whole service in one process over a database and a Temporal namespace of its own: real PostgreSQL, real
 * Temporal, real HTTP on a free port. Only the clock of the machine is shared.
 */
import type { Client } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { createCertifier } from '../../activities/certificate.ts';
import type { ActivityDeps } from '../../activities/deps.ts';
import { createActivities } from '../../activities/index.ts';
import { createGuardedHttp } from '../../activities/providers/guarded-http.ts';
import { buildApp } from '../../api/app.ts';
import { type Dispatcher, startDispatcher } from '../../worker/dispatcher.ts';
import { TASK_QUEUE } from '../../workflows/contract.ts';
import { createTestApi, TEST_SECRETS, type TestApi } from './api.ts';
import { devServer, testWorkflowBundle } from './temporal.ts';

const quiet = { warn: () => undefined };

export type TestStack = {
  readonly api: TestApi;
  readonly baseUrl: string;
  readonly temporal: Client;
  readonly namespace: string;
  readonly dispatcher: Dispatcher;
  startWorker(): Promise<void>;
  stopWorker(): Promise<void>;
  close(): Promise<void>;
};

export async function startStack(options: { worker?: boolean } = {}): Promise<TestStack> {
  const temporal = await devServer();
  let dispatcher: Dispatcher | undefined;
  const api = await createTestApi({ deps: { dispatcher: { nudge: () => dispatcher?.nudge() } } });
  dispatcher = startDispatcher({ db: api.connection.db, client: temporal.client, log: quiet });
  const app = await buildApp(api.deps, pino({ level: 'silent' }));
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  let worker: { instance: Worker; running: Promise<void>; connection: NativeConnection } | undefined;

  const startWorker = async (): Promise<void> => {
    const connection = await NativeConnection.connect({ address: temporal.address });
    const instance = await Worker.create({
      connection,
      namespace: temporal.namespace,
      taskQueue: TASK_QUEUE,
      workflowBundle: await testWorkflowBundle(),
      activities: createActivities(activityDeps(api, baseUrl, dispatcher)),
    });
    worker = { instance, running: instance.run(), connection };
  };
  const stopWorker = async (): Promise<void> => {
    worker?.instance.shutdown();
    await worker?.running;
    await worker?.connection.close();
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
    close: async () => {
      await app.close();
      await stopWorker();
      await dispatcher?.stop();
      await temporal.close();
      await api.close();
    },
  };
}

/** What the activities of a test use; the same secrets as the API's. */
export const activityDeps = (api: TestApi, apiBaseUrl: string, dispatcher: ActivityDeps['dispatcher']): ActivityDeps => ({
  runtime: api.deps.config.runtime,
  db: api.connection.db,
  sealer: api.deps.sealer,
  certifier: createCertifier([TEST_SECRETS.signing]),
  apiBaseUrl,
  cardprocWebhookSecret: TEST_SECRETS.cardproc,
  bankledgerWebhookSecret: TEST_SECRETS.bankledger,
  idverifyWebhookSecret: TEST_SECRETS.idverify,
  guardedHttp: createGuardedHttp({ rules: { allowLocal: true }, resolve: api.deps.resolveHost }),
  dispatcher,
  now: () => new Date(),
  log: quiet,
});
