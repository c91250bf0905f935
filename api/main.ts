/** The API's process: it loads the configuration, connects, starts the dispatcher, listens, and stops in order. */
import { createChangeListener } from '../db/change-listener.ts';
import { createLongLists } from '../db/queries/long-list.ts';
import { createReplicaReads, type ReadList, ReplicaError } from '../db/replica.ts';
import { createApplicantByWorkflow } from '../process/applicant.ts';
import { createLogger } from '../process/logger.ts';
import { countListSources, serveMetrics } from '../process/metrics.ts';
import { closeInOrder } from '../process/shutdown.ts';
import { beginProcess, openProcess } from '../process/startup.ts';
import { stateExposition } from '../process/state-metrics.ts';
import { buildApp } from './app.ts';
import { certificateKeys } from './http/certificate-key.ts';
import { closeApp, createDrain } from './http/drain.ts';

const LONG_LISTS_MAX = 10_000;
const CLOSE_TIMEOUT_MS = 20_000;

const config = beginProcess('api');
const log = createLogger({ level: config.logLevel, name: 'api' });
const { deps, connection, openPool, temporal, tracing, metrics, startDispatcher, close } = await openProcess(
  config,
  'api',
  log,
);
const dispatcher = startDispatcher();
const changes = createChangeListener(config.databaseListenUrl, 'settlement_changed', (error) =>
  log.warn({ err: error }, 'the connection for notifications of changes broke'),
);
const replica =
  config.databaseReadUrl === undefined
    ? undefined
    : openPool('lists', config.databasePoolMax, { url: config.databaseReadUrl });
const readList: ReadList = replica
  ? createReplicaReads({
      primary: connection,
      replica,
      onAnswer: countListSources(metrics),
      onFault: (error) =>
        log.warn(
          { err: error, reason: error instanceof ReplicaError ? error.message : undefined },
          'the replica cannot be used; lists are read from the primary',
        ),
    })
  : (run) => run(deps.db);
const app = await buildApp(
  {
    ...deps,
    config,
    certificateKeys: certificateKeys(config.certificateSigningKeys),
    createApplicant: createApplicantByWorkflow({ client: temporal.client, runbookUrl: config.runbookUrl, log }),
    dispatcher,
    readList,
    longLists: createLongLists(LONG_LISTS_MAX),
    changes,
    temporalHealth: temporal.health,
    metrics,
    requestTracing: tracing?.requests,
  },
  log,
);

const { host, metricsPort } = config;
const expositions = [stateExposition(metrics, { ...deps, config, log })];
const metricsServer =
  metricsPort === undefined ? undefined : await serveMetrics({ host, port: metricsPort, expositions });

const drain = createDrain(app.server);
closeInOrder({ timeoutMs: CLOSE_TIMEOUT_MS, log }, [
  ['connections of callers', drain],
  ['requests', () => closeApp(app)],
  ['metrics', () => metricsServer?.close()],
  ['the dispatcher', () => dispatcher.stop()],
  ['notifications', () => changes.close()],
  ['the replica', () => replica?.close()],
  ['other connections', close],
]);
// Opening a connection costs both sides 15 ms of processor time. A burst of requests would pay for all of them at once.
await Promise.all([connection.openAll(), replica?.openAll()]);
await app.listen({ host: config.host, port: config.port });
log.info({ runtime: config.runtime, port: config.port }, 'API ready');
