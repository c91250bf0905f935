/** What the API's process and the worker's process open in the same way. */
import type pino from 'pino';
import { ConfigError } from '../config/fault.ts';
import { type Config, loadConfig } from '../config/load.ts';
import { type Connection, connect, isUnavailable, STATEMENT_TIMEOUT_MS, TENANTS } from '../db/client.ts';
import { findPoolerFault } from '../db/database-session.ts';
import { findRoleFault } from '../db/role.ts';
import { createSealer } from '../db/seal.ts';
import { createCrash } from './crash.ts';
import { startDispatcher } from './dispatcher.ts';
import { createHostResolver } from './host-resolver.ts';
import { createIdverify } from './idverify.ts';
import { createKeyCheck } from './key-check.ts';
import { createLogger } from './logger.ts';
import { type PoolName, processRegistry } from './metrics.ts';
import { endWhileStarting } from './shutdown.ts';
import { connectTemporal } from './temporal.ts';
import { loadTracing } from './tracing.ts';

/** sysexits.h */
const EXIT_CONFIGURATION = 78;

/**
 * Begins a process. Until it closes in order, whatever ends it is one line of its log.
 *
 * @returns its configuration. A refused one ends the process with 78
 */
export function beginProcess(name: 'api' | 'worker'): Config {
  const log = createLogger({ level: 'fatal', name });
  endWhileStarting(log);
  try {
    return loadConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return refuseConfiguration(log, error.faults);
  }
}

function refuseConfiguration(log: pino.Logger, faults: readonly string[]): never {
  log.fatal({ faults }, 'the configuration is refused');
  return process.exit(EXIT_CONFIGURATION);
}

type PoolOptions = {
  readonly url?: string;
  readonly connectTimeoutMs?: number;
  readonly statementTimeoutMs?: number | undefined;
  readonly untilReady?: (() => Promise<void>) | undefined;
};

/**
 * Opens the connections of a process.
 *
 * @param log has the name of the process
 * @returns `deps`: what the application of either process needs; the rest is for its `main.ts`
 */
export async function openProcess(config: Config, component: 'api' | 'worker', log: pino.Logger) {
  const name = `settlement-${component}`;
  const crash = createCrash(config.crashAt);
  const compareKeys = createKeyCheck({
    config,
    // Without the limit of a statement: if a key is missing, whole tables are read.
    open: () => open(name, 1, { statementTimeoutMs: undefined, untilReady: undefined }),
    log,
    refuse: (faults) => refuseConfiguration(log, faults),
  });
  const open = (
    applicationName: string,
    poolSizeMax: number,
    { url = config.databaseUrl, ...limits }: PoolOptions = {},
  ) =>
    connect(url, {
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      untilReady: compareKeys,
      ...limits,
      poolSizeMax,
      name: applicationName,
      onIdleError: (error) => log.warn({ err: error }, 'an idle database connection broke'),
      refusesOwner: config.runtime !== 'local-sandbox',
      isPooled: config.databaseIsPooled,
      ...(component === 'api' && { tenants: TENANTS, keepsOpen: true }),
    });
  const pools = new Map<PoolName, Connection>();
  const openPool = (poolName: PoolName, poolSizeMax: number, options?: PoolOptions): Connection => {
    const opened = open(poolName === 'main' ? name : `settlement-${poolName}`, poolSizeMax, options);
    pools.set(poolName, opened);
    return opened;
  };
  const connection = openPool('main', config.databasePoolMax);
  const { pool } = connection;
  const fault = (await findRoleFault(pool)) ?? (await findPoolerFault(pool, config.databaseIsPooled));
  if (fault !== undefined) return refuseConfiguration(log, [fault]);
  await compareKeys().catch((error: unknown) => {
    if (!isUnavailable(error)) throw error;
  });
  const tracing = await loadTracing(config, { service: name, log });
  const temporal = connectTemporal(config, tracing);
  const now = () => new Date();
  return {
    connection,
    openPool,
    tracing,
    temporal,
    metrics: processRegistry({ pools, db: connection.db, temporalHealth: temporal.health }),
    deps: {
      runtime: config.runtime,
      db: connection.db,
      sealer: createSealer(config.encryptionKeys),
      resolveHost: createHostResolver(),
      idverify: createIdverify({ runtime: config.runtime, settings: config.idverify, now, log }),
      crash,
      now,
    },
    startDispatcher: () =>
      startDispatcher({
        db: connection.db,
        client: temporal.client,
        log,
        traceDispatch: tracing?.traceDispatch,
        runbookUrl: config.runbookUrl,
        crash,
      }),
    /** To be called last: the dispatcher and the application have ended. */
    close: async (): Promise<void> => {
      // The collector may be down. Lost traces do not make the stop fail.
      const lose = (error: unknown) => log.warn({ err: error }, 'the last traces could not be sent');
      await Promise.all([temporal.close(), connection.close(), tracing?.close().catch(lose)]);
    },
  };
}
