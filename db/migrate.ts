/** Brings a database to the current schema. Several processes may run it at the same time. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator';
import pg from 'pg';
import { grantServicePrivileges } from './privilege.ts';

const MIGRATIONS_FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), 'migrations');

/** The key of the advisory lock: any number, the same in every process. */
const MIGRATION_LOCK = 7_146_301;

/** How many migrations this code expects. Readiness compares it with the database (contract §15). */
export const migrationCount = (): number => readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER }).length;

/** `databaseUrl` is the service's, `migrationUrl` that of the role that owns the tables. One role may be both. */
export type DatabaseUrls = { readonly databaseUrl: string; readonly migrationUrl: string };

/** Migrates as the owner, and then grants the service's role what it needs. */
export async function migrate({ databaseUrl, migrationUrl }: DatabaseUrls): Promise<void> {
  const client = new pg.Client({ connectionString: migrationUrl, application_name: 'settlement-migrate' });
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await applyMigrations(drizzle(client), { migrationsFolder: MIGRATIONS_FOLDER });
    const serviceRole = roleOf(databaseUrl);
    if (serviceRole !== roleOf(migrationUrl)) await grantServicePrivileges(client, serviceRole);
  } finally {
    await client.end();
  }
}

/** The name of the role that a database's address names. */
const roleOf = (databaseUrl: string): string => decodeURIComponent(new URL(databaseUrl).username);
