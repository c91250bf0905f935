/** Brings a database to the current schema. Several processes may run it at the same time. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate as applyMigrations } from 'drizzle-orm/node-postgres/migrator';
import pg from 'pg';
import { causeOf } from './client.ts';
import { grantServicePrivileges } from './privilege.ts';

const MIGRATIONS_FOLDER = path.join(path.dirname(fileURLToPath(import.meta.url)), 'migrations');

/** The key of the advisory lock: any number, the same in every process. */
const MIGRATION_LOCK = 7_146_301;

/** SQLSTATE. */
const INSUFFICIENT_PRIVILEGE = '42501';

/** How many migrations this code expects. Readiness compares it with the database (contract §15). */
export const migrationCount = (): number => readMigrationFiles({ migrationsFolder: MIGRATIONS_FOLDER }).length;

/** `databaseUrl` is the service's, `migrationUrl` that of the role that owns the tables. One role may be both. */
export type DatabaseUrls = { readonly databaseUrl: string; readonly migrationUrl: string };

/**
 * Migrates as the owner, and then grants the service's role what it needs.
 *
 * @throws Error in one sentence when the role of `migrationUrl` is not the owner, or the service's does not exist
 */
export async function migrate({ databaseUrl, migrationUrl }: DatabaseUrls): Promise<void> {
  const client = new pg.Client({ connectionString: migrationUrl, application_name: 'settlement-migrate' });
  await client.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await applyMigrations(drizzle(client), { migrationsFolder: MIGRATIONS_FOLDER }).catch(explainRefusal(migrationUrl));
    const serviceRole = roleOf(databaseUrl);
    if (serviceRole !== roleOf(migrationUrl)) await grantServicePrivileges(client, serviceRole);
  } finally {
    await client.end();
  }
}

const explainRefusal =
  (migrationUrl: string) =>
  (error: unknown): never => {
    const cause = causeOf(error);
    if (!(cause instanceof pg.DatabaseError) || cause.code !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new Error(
      `The role "${roleOf(migrationUrl)}" does not own the tables: set MIGRATION_DATABASE_URL to the address of their owner (docs/operations.md, "Database roles").`,
      { cause },
    );
  };

/** The name of the role that a database's address names. */
const roleOf = (databaseUrl: string): string => decodeURIComponent(new URL(databaseUrl).username);
