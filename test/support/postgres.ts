/** A database for each test file: a copy of the migrated template on the run's PostgreSQL. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { z } from 'zod';
import { sharedResource } from './resource.ts';

const Server = z.object({ serverUrl: z.string(), template: z.string() });

export type TestDatabase = { readonly databaseUrl: string; readonly drop: () => Promise<void> };

/** The run's PostgreSQL. The first caller waits until it has started. */
export const testServer = () => sharedResource('postgres', Server);

/** An empty database with the current schema. `drop` ends whatever is still connected to it. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { serverUrl, template } = await testServer();
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  return {
    databaseUrl: `${serverUrl}/${name}`,
    drop: () => administer(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function administer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: `${serverUrl}/postgres` });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
