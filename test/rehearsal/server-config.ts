/**
 * The configuration of a Temporal server with all four services on this machine: the static file and the dynamic one.
 * Both are written as JSON, which is valid YAML.
 */

import { DYNAMIC_CONFIG } from '../../scripts/stack/temporal.ts';

export type ServerSettings = {
  /** Eight ports: two for each of the four services. */
  readonly ports: readonly number[];
  /** With user and password. The databases are `temporal` and `temporal_visibility` on this server. */
  readonly databaseServerUrl: string;
  readonly dynamicConfigFile: string;
};

export const DATABASES = { default: 'temporal', visibility: 'temporal_visibility' } as const;

const SERVICES = ['frontend', 'matching', 'history', 'worker'] as const;
const CLUSTER = 'active';
/** Never change it: a server refuses a database that was made with another number. */
const HISTORY_SHARDS = 4;
/** For each of the four services. More connections gained nothing (measured). */
const CONNECTIONS = { [DATABASES.default]: 20, [DATABASES.visibility]: 5 };

/** The server's connections, those of three APIs and three workers (docs/operations.md), and a reserve. */
export const DATABASE_CONNECTIONS_MAX =
  SERVICES.length * (CONNECTIONS.temporal + CONNECTIONS.temporal_visibility) + 3 * (20 + 1) + 3 * (20 + 17) + 30;

/** The static configuration. It contains the database's password. */
export function serverConfig({ ports, databaseServerUrl, dynamicConfigFile }: ServerSettings): object {
  const rpc = (index: number) => ({
    grpcPort: ports[2 * index],
    membershipPort: ports[2 * index + 1],
    bindOnLocalHost: true,
  });
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: HISTORY_SHARDS,
      datastores: {
        default: { sql: store(databaseServerUrl, DATABASES.default) },
        visibility: { sql: store(databaseServerUrl, DATABASES.visibility) },
      },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: Object.fromEntries(SERVICES.map((service, index) => [service, { rpc: rpc(index) }])),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: CLUSTER,
      currentClusterName: CLUSTER,
      clusterInformation: {
        [CLUSTER]: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: frontendAddress(ports),
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    dynamicConfigClient: { filepath: dynamicConfigFile, pollInterval: '10s' },
  };
}

/** The address for clients. */
export const frontendAddress = (ports: readonly number[]): string => `127.0.0.1:${ports[0]}`;

function store(databaseServerUrl: string, databaseName: keyof typeof CONNECTIONS): object {
  const { host, username, password } = new URL(databaseServerUrl);
  const connections = CONNECTIONS[databaseName];
  return {
    pluginName: 'postgres12',
    databaseName,
    connectAddr: host,
    connectProtocol: 'tcp',
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    maxConns: connections,
    maxIdleConns: connections,
    maxConnLifetime: '1h',
  };
}

/** With its default limits the server refuses requests when one machine is under load. */
const LIMITS = {
  'frontend.persistenceMaxQPS': 20_000,
  'history.persistenceMaxQPS': 20_000,
  'matching.persistenceMaxQPS': 20_000,
  'frontend.rps': 20_000,
  'frontend.namespaceRPS': 20_000,
  'frontend.namespaceCount': 20_000,
  'history.rps': 20_000,
  'matching.rps': 20_000,
};

/** Each setting with one value that applies everywhere. */
export const dynamicConfig = (): object =>
  Object.fromEntries(Object.entries({ ...DYNAMIC_CONFIG, ...LIMITS }).map(([name, value]) => [name, [{ value }]]));
