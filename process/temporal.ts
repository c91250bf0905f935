/** A process's connection to Temporal. */
import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import type { Config } from '../config/load.ts';
import type { TemporalFault, TemporalHealth } from '../domain/temporal-health.ts';
import { dataConverterOf } from './payload-codec.ts';
import { addSearchAttributes, checkTemporal } from './temporal-health.ts';
import type { Tracing } from './tracing.ts';

export type TemporalClient = {
  readonly client: Client;
  readonly address: string;
  readonly namespace: string;
  health(): Promise<TemporalHealth>;
  /**
   * What the worker's own connection found, which has other certificates: `health` says it while Temporal is up here.
   */
  noteWorkerFault(fault: TemporalFault | undefined): void;
  /** Registers what `health` misses. */
  addSearchAttributes(): Promise<void>;
  close(): Promise<void>;
};

/**
 * By default gRPC waits up to two minutes before it connects again, and every call fails until then: after an outage,
 * Temporal would be unused for up to half as long again.
 */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 250, 'grpc.max_reconnect_backoff_ms': 1_000 } as const;

/** Connects at the first call, so that a process starts while Temporal is down. */
export function connectTemporal(config: Pick<Config, 'temporal' | 'payloadKeys'>, tracing?: Tracing): TemporalClient {
  const { connectionOptions, namespace = 'default' } = config.temporal;
  const options = { ...(connectionOptions as ConnectionOptions), channelArgs: RECONNECT };
  const connection = Connection.lazy(options);
  // Without the interceptor that retries: a call tells why it failed.
  const probe = Connection.lazy({ ...options, interceptors: [] });
  const client = new Client({
    connection,
    namespace,
    dataConverter: dataConverterOf(config),
    interceptors: { workflow: tracing?.client ?? [] },
  });
  let workerFault: TemporalFault | undefined;
  return {
    client,
    address: connection.options.address,
    namespace,
    health: async () => {
      const health = await checkTemporal({ connection: probe, namespace });
      return health.status === 'up' ? (workerFault ?? health) : health;
    },
    noteWorkerFault: (fault) => {
      workerFault = fault;
    },
    addSearchAttributes: () => addSearchAttributes({ connection: probe, namespace }),
    close: async () => void (await Promise.all([connection.close(), probe.close()])),
  };
}
