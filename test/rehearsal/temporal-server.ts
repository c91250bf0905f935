/** The Temporal server of a cluster: its schema, its configuration, its process, its namespace. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { isListening } from '../../scripts/stack/port.ts';
import type { ServiceOptions } from '../../scripts/stack/service.ts';
import { DATABASES, dynamicConfig, frontendAddress, type ServerSettings, serverConfig } from './server-config.ts';

export const NAMESPACE = 'settlement';

const run = promisify(execFile);

const RETENTION = '30 days';
const CALL_TIMEOUT_MS = 1_000;
const SCHEMA_TIMEOUT_MS = 60_000;
const NAME = 'cluster';
/** gRPC's ALREADY_EXISTS. */
const ALREADY_EXISTS = 6;
const PLUGIN = 'postgres12';
const SCHEMAS = [
  { database: DATABASES.default, schema: 'postgresql/v12/temporal' },
  { database: DATABASES.visibility, schema: 'postgresql/v12/visibility' },
];

/** Creates both databases and updates their schema. The tool contains the schema of its version. */
export async function prepareDatabases(sqlTool: string, databaseServerUrl: string): Promise<void> {
  const { hostname, port, username, password } = new URL(databaseServerUrl);
  const env = { ...process.env, SQL_PASSWORD: decodeURIComponent(password) };
  for (const { database, schema } of SCHEMAS) {
    const where = [
      '--plugin',
      PLUGIN,
      '--endpoint',
      hostname,
      '--port',
      port,
      '--user',
      decodeURIComponent(username),
      '--database',
      database,
    ];
    const tool = (...command: string[]) => run(sqlTool, [...where, ...command], { env, timeout: SCHEMA_TIMEOUT_MS });
    await tool('create-database');
    await tool('setup-schema', '--version', '0.0');
    await tool('update-schema', '--schema-name', schema);
  }
}

/**
 * Writes the server's configuration to `directory`.
 *
 * @returns how to start the server with it
 */
export async function serverService(
  directory: string,
  {
    program,
    logFile,
    ...settings
  }: Omit<ServerSettings, 'dynamicConfigFile'> & { readonly program: string; readonly logFile: string },
): Promise<ServiceOptions> {
  const dynamicConfigFile = path.join(directory, 'dynamic.yaml');
  await mkdir(directory, { recursive: true });
  // The first file contains the database's password.
  await writeFile(
    path.join(directory, `${NAME}.yaml`),
    JSON.stringify(serverConfig({ ...settings, dynamicConfigFile }), null, 2),
    { mode: 0o600 },
  );
  await writeFile(dynamicConfigFile, JSON.stringify(dynamicConfig(), null, 2));
  const [frontendPort = 0] = settings.ports;
  return {
    name: 'Temporal',
    stage: 'orchestrator',
    run: [program, '--root', directory, '--config', '.', '--env', NAME, '--allow-no-auth', 'start'],
    env: process.env,
    logFile,
    // After one refused connection, gRPC waits a second before the next attempt.
    isReady: async () => (await isListening(frontendPort)) && (await hasNamespace(frontendAddress(settings.ports))),
  };
}

/** Registers the namespace if it is missing. True when the server knows it. */
async function hasNamespace(address: string): Promise<boolean> {
  try {
    const connection = await Connection.connect({ address, connectTimeout: CALL_TIMEOUT_MS });
    try {
      return await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
        await registerNamespace(connection);
        await connection.operatorService.listSearchAttributes({ namespace: NAMESPACE });
        return true;
      });
    } finally {
      await connection.close();
    }
  } catch {
    return false;
  }
}

async function registerNamespace({ workflowService }: Connection): Promise<void> {
  try {
    await workflowService.registerNamespace({
      namespace: NAMESPACE,
      workflowExecutionRetentionPeriod: msToTs(RETENTION),
    });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === ALREADY_EXISTS)) throw error;
  }
}
