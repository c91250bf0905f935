/** The worker's process: configuration, connections, dispatcher, worker and shutdown. */
import { setTimeout as delay } from 'node:timers/promises';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { createCertifier } from '../activities/certificate.ts';
import { createActivities } from '../activities/index.ts';
import { createGuardedHttp } from '../activities/providers/guarded-http.ts';
import { createMailer } from '../activities/providers/mailer.ts';
import { createPayoutRail } from '../activities/providers/payout-rail.ts';
import { LANE_CONNECTIONS } from '../activities/webhook-lane.ts';
import { createChangeListener } from '../db/change-listener.ts';
import { startLanes } from '../db/commands/lost-run.ts';
import { newId } from '../db/id.ts';
import { activityMetrics } from '../process/activity-metrics.ts';
import { createLogger } from '../process/logger.ts';
import { freeLoopbackPort, serveMetrics, temporalExposition, workerMetricsPort } from '../process/metrics.ts';
import { createReadiness, createWorkerReadiness } from '../process/readiness.ts';
import { createLaneReports, createRuns } from '../process/runs.ts';
import { closeInOrder } from '../process/shutdown.ts';
import { beginProcess, openProcess } from '../process/startup.ts';
import { temporalFaultOf } from '../process/temporal-health.ts';
import { watchTemporal } from './temporal-watch.ts';
import { createWorker, type RunningWorker } from './worker.ts';

/** When hundreds of retries time out at once, their records wait: few run at a time beside lanes and settlements. */
const RETRY_POOL = { sizeMax: 4, connectTimeoutMs: 30_000 } as const;
const CLOSE_TIMEOUT_MS = 30_000;
const CONNECT_RETRY_MS = 5_000;
const READY_POLL_MS = 1_000;

const config = beginProcess('worker');
const log = createLogger({ level: config.logLevel, name: 'worker' });
const { host, metricsPort } = config;
const sdkMetricsPort = metricsPort === undefined ? undefined : await freeLoopbackPort();
Runtime.install({
  shutdownSignals: [],
  logger: new DefaultLogger('WARN', ({ level, message, meta: { error: err, ...fields } = {} }) =>
    log[level === 'ERROR' ? 'error' : 'warn']({ ...fields, err }, message),
  ),
  telemetryOptions: {
    logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
    ...(sdkMetricsPort === undefined
      ? {}
      : {
          metrics: {
            prometheus: {
              bindAddress: `127.0.0.1:${sdkMetricsPort}`,
              countersTotalSuffix: true,
              unitSuffix: true,
              useSecondsForDurations: true,
            },
          },
        }),
  },
});

const { deps, openPool, temporal, tracing, metrics, startDispatcher, close } = await openProcess(config, 'worker', log);
const dispatcher = startDispatcher();
const guardedHttp = createGuardedHttp({
  rules: { allowLocal: config.webhookAllowLocalTargets },
  resolve: deps.resolveHost,
});
const deliveriesDue = createChangeListener(config.databaseListenUrl, 'deliveries_due', (error) =>
  log.warn({ err: error }, 'the connection for notifications of deliveries broke'),
);
const lanes = openPool('lanes', LANE_CONNECTIONS);
const retries = openPool('retries', RETRY_POOL.sizeMax, RETRY_POOL);
const stopping = new AbortController();
const observer = activityMetrics(metrics);
const activities = createActivities({
  ...deps,
  laneDb: lanes.db,
  retryDb: retries.db,
  certifier: createCertifier(config.certificateSigningKeys),
  apiBaseUrl: config.publicBaseUrl,
  cardprocWebhookSecret: config.cardprocWebhookSecrets[0] ?? '',
  bankledgerWebhookSecret: config.bankledgerWebhookSecrets[0] ?? '',
  idverifyWebhookSecret: config.idverifyWebhookSecrets[0] ?? '',
  payoutRail: createPayoutRail(deps.runtime),
  guardedHttp: tracing?.traceHttp(guardedHttp) ?? guardedHttp,
  mailer: createMailer(config),
  dispatcher,
  runs: createRuns(temporal.client),
  reportLane: createLaneReports(temporal.client),
  deliveriesDue,
  stopping: stopping.signal,
  retentionDays: config.retentionDays,
  observer,
  log,
});
observer.known(Object.keys(activities));
let worker: RunningWorker | undefined;
let running: Promise<void> = Promise.resolve();
const temporalHealth = temporal.health;
const readiness = createReadiness({ ...deps, temporalHealth, log });
const metricsServer =
  metricsPort === undefined || sdkMetricsPort === undefined
    ? undefined
    : await serveMetrics({
        host,
        port: workerMetricsPort(metricsPort),
        expositions: [() => metrics.metrics(), temporalExposition(sdkMetricsPort)],
        readiness: createWorkerReadiness(readiness, () => worker?.isPolling() === true),
      });

const watch = watchTemporal({ temporal, log });
closeInOrder({ timeoutMs: CLOSE_TIMEOUT_MS, log }, [
  ['lanes', () => stopping.abort()],
  ['new work', () => worker?.shutdown()],
  // A slow Temporal answers the watch late. No new work begins meanwhile.
  ['activities and the watch of Temporal', () => Promise.all([running.catch(() => undefined), watch.stop()])],
  ['metrics', () => metricsServer?.close()],
  ['notifications', () => deliveriesDue.close()],
  ['the dispatcher', () => dispatcher.stop()],
  ['the worker', () => worker?.close()],
  ['the connections of lanes and retries', () => Promise.all([lanes.close(), retries.close()])],
  ['other connections', close],
]);

await watch.up;
// A database that is not migrated yet, or a clock that is wrong: work begins when it is right.
while (!stopping.signal.aborted && (await readiness()).status !== 'ready')
  await delay(READY_POLL_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
while (worker === undefined && !stopping.signal.aborted) {
  try {
    worker = await createWorker({ config, activities, tracing });
    temporal.noteWorkerFault(undefined);
  } catch (error) {
    temporal.noteWorkerFault(temporalFaultOf(error));
    // The SDK's error names the address and the namespace, and nothing else.
    const reason = error instanceof Error ? error.message : 'unknown';
    log.warn({ err: error, reason, retry_in_ms: CONNECT_RETRY_MS }, 'the worker could not connect to Temporal');
    await delay(CONNECT_RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
  }
}
if (worker !== undefined && !stopping.signal.aborted) {
  running = worker.run();
  running.catch(async (error: unknown) => {
    log.error({ err: error, temporal: (await temporalHealth()).cause }, 'the worker stopped unexpectedly');
    // Unhandled, it closes the process in order, which ends with 1.
    if (!stopping.signal.aborted) throw error;
  });
  await startLanes({ ...deps, dispatcher }, `worker-${newId()}`).catch((error: unknown) =>
    log.warn({ err: error }, 'the lanes could not be started; the sweep does it'),
  );
  log.info({ runtime: config.runtime }, 'worker ready');
}
