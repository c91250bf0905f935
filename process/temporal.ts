/** A process's connection to Temporal, and the search attributes that must be registered before it is used. */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import type { Config } from '../config/load.ts';
import { SEARCH_ATTRIBUTES } from '../workflows/contract.ts';
import { dataConverterOf } from './payload-codec.ts';
import type { Tracing } from './tracing.ts';

/** INDEXED_VALUE_TYPE_KEYWORD of Temporal's API. */
const KEYWORD = 2;
const CALL_TIMEOUT_MS = 2_000;
const NAMESPACE_POLL_MS = 100;
const NAMESPACE_WAIT_MS = 60_000;

export type TemporalClient = {
  readonly client: Client;
  readonly namespace: string;
  health(): Promise<'up' | 'degraded'>;
  close(): Promise<void>;
};

/** Connects at the first call, so that the API starts while Temporal is down. */
export function connectTemporal(config: Pick<Config, 'temporal' | 'payloadKeys'>, tracing?: Tracing): TemporalClient {
  const { connectionOptions, namespace = 'default' } = config.temporal;
  const connection = Connection.lazy(connectionOptions as ConnectionOptions);
  const health = async (): Promise<'up' | 'degraded'> => {
    try {
      await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => connection.healthService.check({}));
      return 'up';
    } catch {
      return 'degraded';
    }
  };
  const client = new Client({
    connection,
    namespace,
    dataConverter: dataConverterOf(config),
    interceptors: { workflow: tracing?.client ?? [] },
  });
  return { client, namespace, health, close: () => connection.close() };
}

/**
 * Registers the missing search attributes and checks the type of the others. The check is needed: Temporal reports
 * success when a name is registered again with another type, and changes nothing.
 *
 * @throws Error that names each attribute of another type
 */
export async function ensureSearchAttributes({ client, namespace }: TemporalClient): Promise<void> {
  const { operatorService } = client.connection;
  const { customAttributes = {} } = await untilServed(() => operatorService.listSearchAttributes({ namespace }));
  const names = Object.keys(SEARCH_ATTRIBUTES);
  const wrong = names.filter((name) => customAttributes?.[name] !== undefined && customAttributes[name] !== KEYWORD);
  if (wrong.length > 0)
    throw new Error(
      `Temporal has search attributes of another type than Keyword: ${wrong.join(', ')}. Use another namespace.`,
    );
  const missing = names.filter((name) => customAttributes?.[name] === undefined);
  if (missing.length > 0)
    await operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
    });
}

/** Retries for a minute: a server that has just started answers before its namespaces are ready. */
export async function untilServed<T>(call: () => Promise<T>): Promise<T> {
  const end = Date.now() + NAMESPACE_WAIT_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (Date.now() > end) throw error;
      await delay(NAMESPACE_POLL_MS);
    }
  }
}
