import { expect, test } from 'vitest';
import { DATABASE_CONNECTIONS_MAX, dynamicConfig, frontendAddress, serverConfig } from './server-config.ts';

const PORTS = [17_233, 17_234, 17_235, 17_236, 17_237, 17_238, 17_239, 17_240];
const SETTINGS = {
  ports: PORTS,
  databaseServerUrl: 'postgresql://settlement:p%40ss%2Fword@127.0.0.1:55432',
  dynamicConfigFile: '/somewhere/dynamic.yaml',
};

test('each of the four services has ports of its own and listens on this machine only', () => {
  expect(serverConfig(SETTINGS)).toMatchObject({
    services: {
      frontend: { rpc: { grpcPort: 17_233, membershipPort: 17_234, bindOnLocalHost: true } },
      matching: { rpc: { grpcPort: 17_235, membershipPort: 17_236, bindOnLocalHost: true } },
      history: { rpc: { grpcPort: 17_237, membershipPort: 17_238, bindOnLocalHost: true } },
      worker: { rpc: { grpcPort: 17_239, membershipPort: 17_240, bindOnLocalHost: true } },
    },
    global: { membership: { broadcastAddress: '127.0.0.1' } },
  });
});

test('the cluster calls itself at the address that its clients use', () => {
  expect(frontendAddress(PORTS)).toBe('127.0.0.1:17233');
  expect(serverConfig(SETTINGS)).toMatchObject({
    clusterMetadata: {
      currentClusterName: 'active',
      clusterInformation: { active: { enabled: true, rpcAddress: '127.0.0.1:17233' } },
    },
  });
});

test('histories and visibility have databases of their own, and the password is decoded from the URL', () => {
  const access = {
    pluginName: 'postgres12',
    connectAddr: '127.0.0.1:55432',
    user: 'settlement',
    password: 'p@ss/word',
  };
  expect(serverConfig(SETTINGS)).toMatchObject({
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      // A server refuses a database that was made with another number.
      numHistoryShards: 4,
      datastores: {
        default: { sql: { ...access, databaseName: 'temporal' } },
        visibility: { sql: { ...access, databaseName: 'temporal_visibility' } },
      },
    },
    dynamicConfigClient: { filepath: '/somewhere/dynamic.yaml' },
  });
});

test('PostgreSQL allows enough connections for the four services of the server, three APIs and three workers', () => {
  expect(DATABASE_CONNECTIONS_MAX).toBeGreaterThanOrEqual(4 * (20 + 5) + 3 * 21 + 3 * 37);
});

test('every dynamic setting has one value that applies everywhere, and no dispatch waits for a 50 ms tick', () => {
  expect(dynamicConfig()).toMatchObject({
    'history.transferProcessorMaxPollRPS': [{ value: 2_000 }],
    'system.enableActivityEagerExecution': [{ value: true }],
  });
  for (const values of Object.values(dynamicConfig())) expect(values).toEqual([{ value: expect.anything() }]);
});
