/** The API's process: it loads the configuration, connects, starts the dispatcher, listens, and stops in order. */
import { loadConfig } from '../config.ts';
import { createChangeListener } from '../db/change-listener.ts';
import { connect } from '../db/client.ts';
import { createLongLists } from '../db/queries/long-list.ts';
import { refuseOwner } from '../db/role.ts';
import { createSealer } from '../db/seal.ts';
import { createCrash } from '../process/crash.ts';
import { startDispatcher } from '../process/dispatcher.ts';
import { createHostResolver } from '../process/host-resolver.ts';
import { createIdverify } from '../process/idverify.ts';
import { createLogger } from '../process/logger.ts';
import { processRegistry, serveMetrics } from '../process/metrics.ts';
import { closeInOrder } from '../process/shutdown.ts';
import { stateExposition } from '../process/state-metrics.ts';
import { connectTemporal } from '../process/temporal.ts';
import { loadTracing } from '../process/tracing.ts';
import { buildApp } from './app.ts';
import { certificateKeys } from './http/certificate-key.ts';
import { createDrain } from './http/drain.ts';

const POOL_SIZE_MAX = 20;
const LONG_LISTS_MAX = 10_000;
const CLOSE_TIMEOUT_MS = 20_000;

const config = loadConfig();
const crash = createCrash(config.crashAt);
const log = createLogger({ level: config.logLevel, name: 'api' });
const connection = connect(config.databaseUrl, {
  poolSizeMax: POOL_SIZE_MAX,
  name: 'settlement-api',
  onIdleError: (error) => log.warn({ err: error }, 'an idle database connection broke'),
  refusesOwner: config.runtime !== 'local-sandbox',
});
await refuseOwner(connection.pool);
const tracing = await loadTracing(config, { service: 'settlement-api', log });
const temporal = connectTemporal(config, tracing);
const metrics = processRegistry(connection.pool);
const dispatcher = startDispatcher({
  db: connection.db,
  client: temporal.client,
  log,
  traceDispatch: tracing?.traceDispatch,
  runbookUrl: config.runbookUrl,
  crash,
});
const changes = createChangeListener(config.databaseUrl, (error) =>
  log.warn({ err: error }, 'the connection for notifications of changes broke'),
);
const app = await buildApp(
  {
    config,
    runtime: config.runtime,
    db: connection.db,
    sealer: createSealer(config.encryptionKeys),
    certificateKeys: certificateKeys(config.certificateSigningKeys),
    idverify: createIdverify({ runtime: config.runtime, settings: config.idverify, now: () => new Date(), log }),
    dispatcher,
    longLists: createLongLists(LONG_LISTS_MAX),
    changes,
    crash,
    temporalHealth: temporal.health,
    resolveHost: createHostResolver(),
    now: () => new Date(),
    metrics,
    requestTracing: tracing?.requests,
  },
  log,
);

const { host, metricsPort, outboxMaxRows } = config;
const expositions = [stateExposition(metrics, { db: connection.db, outboxMaxRows, now: () => new Date(), log })];
const metricsServer =
  metricsPort === undefined ? undefined : await serveMetrics({ host, port: metricsPort, expositions });

const drain = createDrain(app.server);
closeInOrder(CLOSE_TIMEOUT_MS, async ({ err }) => {
  if (err) log.error({ err }, 'the API stops after an error');
  await drain();
  await app.close();
  await metricsServer?.close();
  await dispatcher.stop();
  await Promise.all([temporal.close(), changes.close(), connection.close(), tracing?.close()]);
});
await app.listen({ host: config.host, port: config.port });
log.info({ runtime: config.runtime, port: config.port }, 'API ready');
