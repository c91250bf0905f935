/** A database for each test file: a copy of the migrated template on the run's PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { DatabaseUrls } from '../../db/migrate.ts';
import { queryOnce } from './connection.ts';
import { sharedResource } from './resource.ts';

const Server = z.object({ serverUrl: z.string(), serviceUrl: z.string(), template: z.string() });

/** Tests run as the service's role, so that a missing privilege fails them. `migrationUrl` is the owner's. */
export type TestDatabase = DatabaseUrls & {
  /** A direct address, when `databaseUrl` leads to a pooler. */
  readonly listenUrl?: string;
  readonly drop: () => Promise<void>;
};

/** The run's PostgreSQL. The first caller waits until it has started. */
export const testServer = () => sharedResource('postgres', Server);

/**
 * An empty database with the current schema. `drop` ends whatever is still connected to it.
 *
 * @param original to copy instead; nobody may be connected to it
 */
export async function createTestDatabase(original?: TestDatabase): Promise<TestDatabase> {
  const { serverUrl, serviceUrl, ...server } = await testServer();
  const template = original ? new URL(original.databaseUrl).pathname.slice(1) : server.template;
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  return {
    databaseUrl: new URL(name, serviceUrl).href,
    migrationUrl: `${serverUrl}/${name}`,
    drop: () => administer(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

const administer = async (serverUrl: string, statement: string): Promise<void> =>
  void (await queryOnce(`${serverUrl}/postgres`, statement));
