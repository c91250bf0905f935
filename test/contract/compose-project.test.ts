/**
 * The project that Compose loads from docker-compose.yml, with the secrets that the manual generates: which service has
 * which secret, and what the roles of the database can do.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import pg from 'pg';
import { test as base, describe, expect } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { loadConfig, loadMigrationConfig } from '../../config/load.ts';
import { migrate } from '../../db/migrate.ts';
import { LOCALE, startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { FILE } from '../support/fixture.ts';
import { readSource } from '../support/source.ts';

const OPERATIONS = readSource('docs/operations.md');

const Project = z.object({
  services: z.record(
    z.string(),
    z.looseObject({
      // Null passes the variable on, if it is set.
      environment: z.record(z.string(), z.string().nullable()).default({}),
      image: z.string().optional(),
      build: z.object({ args: z.record(z.string(), z.string()) }).optional(),
    }),
  ),
  // A configuration that is a file of the repository has no content here.
  configs: z.record(z.string(), z.looseObject({ content: z.string().default('') })),
});
type Environment = Readonly<Record<string, string>>;

/** Secrets that only an operator can know, and the address that must be set with one of them; a value for each. */
const OPTIONAL: Environment = {
  IDVERIFY_BASE_URL: `https://${randomBytes(16).toString('hex')}.example`,
  IDVERIFY_APP_TOKEN: randomBytes(32).toString('hex'),
  IDVERIFY_SECRET_KEY: randomBytes(32).toString('hex'),
  SMTP_URL: `smtps://user:${randomBytes(16).toString('hex')}@smtp.example:465`,
  OPERATOR_TOKEN: randomBytes(32).toString('hex'),
  TEMPORAL_PAYLOAD_KEYS: `p1:${randomBytes(32).toString('base64')}`,
  OTEL_EXPORTER_OTLP_HEADERS: `authorization=${randomBytes(16).toString('hex')}`,
};

/** The file that the manual's commands write. */
async function generateSecrets(): Promise<Environment> {
  const script = /```sh\n(\(\n +umask 077\n[^`]+)```/.exec(OPERATIONS)?.[1] ?? '';
  const folder = mkdtempSync(path.join(os.tmpdir(), 'secrets-'));
  try {
    const { stdout } = await execa('sh', ['-ec', `umask 022\n${script}umask`], { cwd: folder });
    // What is checked out in the same shell afterwards is read by the users of the containers.
    expect(stdout).toMatch(/^0?022$/);
    expect(statSync(path.join(folder, '.env')).mode & 0o777).toBe(0o600);
    const lines = readFileSync(path.join(folder, '.env'), 'utf8').trim().split('\n');
    return Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * The project as Compose makes it with these variables.
 *
 * @throws Error when a required one is missing
 */
function loadProject(variables: Environment): z.infer<typeof Project> {
  const interpolate = (text: string): string =>
    text.replaceAll(/\$(?:\$|\{([A-Z_]+):([-?])([^}]*)\})/g, (whole, name: string, rule: string, rest: string) => {
      if (whole === '$$') return '$';
      const value = variables[name];
      if (!value && rule === '?') throw new Error(`${name} is required: ${rest}`);
      return value || rest;
    });
  const project = Project.parse(
    parse(readSource('docker-compose.yml'), (_, value) => (typeof value === 'string' ? interpolate(value) : value), {
      merge: true,
    }),
  );
  for (const service of Object.values(project.services))
    for (const [name, value] of Object.entries(service.environment))
      service.environment[name] = value ?? variables[name] ?? null;
  return project;
}

const test = base
  .extend('secrets', FILE, generateSecrets)
  .extend('project', FILE, ({ secrets }) => loadProject({ ...secrets, ...OPTIONAL }))
  .extend('environmentOf', FILE, ({ project }) => (service: string): Environment => {
    const given = Object.entries(project.services[service]?.environment ?? {});
    return Object.fromEntries(given.flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
  });

describe('the project that Compose loads', () => {
  test('asks for each secret of the manual, and does not load without one', ({ secrets }) => {
    for (const name of Object.keys(secrets))
      expect(() => loadProject({ ...secrets, [name]: '' }), name).toThrow(`${name} is required`);
  });

  test('gives each secret to the services that need it, and to no other', ({ secrets, project }) => {
    const remote = ['api', 'worker'];
    const sandbox = ['sandbox-api', 'sandbox-worker'];
    const databases: Readonly<Record<string, readonly string[]>> = {
      POSTGRES_PASSWORD: ['postgres'],
      SETTLEMENT_DB_PASSWORD: ['migrate', 'postgres'],
      SETTLEMENT_SERVICE_DB_PASSWORD: ['api', 'migrate', 'postgres', 'worker'],
      SANDBOX_DB_PASSWORD: ['postgres', 'sandbox-migrate'],
      SANDBOX_SERVICE_DB_PASSWORD: ['postgres', 'sandbox-api', 'sandbox-migrate', 'sandbox-worker'],
      TEMPORAL_DB_PASSWORD: ['postgres', 'temporal', 'temporal-schema'],
      // `docker compose run worker` is how operators run their commands.
      OPERATOR_TOKEN: ['worker'],
    };
    const given = { ...secrets, ...OPTIONAL };
    expect(Object.keys(secrets)).toHaveLength(18);
    expect(new Set(Object.values(given)).size).toBe(Object.keys(given).length);
    for (const [name, value] of Object.entries(given)) {
      const holders = Object.entries(project.services)
        .filter(([, service]) => JSON.stringify(service).includes(value))
        .map(([holder]) => holder);
      expect(holders.sort(), name).toEqual(databases[name] ?? (name.startsWith('SANDBOX_') ? sandbox : remote));
    }
  });

  test('gives every process of ours an environment without a fault', ({ environmentOf }) => {
    for (const name of ['api', 'worker', 'sandbox-api', 'sandbox-worker']) {
      const config = loadConfig(environmentOf(name), '/nonexistent');
      expect(config.runtime).toBe(name.startsWith('sandbox') ? 'local-sandbox' : 'remote-sandbox');
      expect(environmentOf(name)).not.toHaveProperty('MIGRATION_DATABASE_URL');
    }
    for (const name of ['migrate', 'sandbox-migrate'])
      expect(Object.keys(loadMigrationConfig(environmentOf(name)))).toEqual(['databaseUrl', 'migrationUrl']);
  });

  test('compares texts in the database as npm start does', ({ environmentOf }) => {
    expect(environmentOf('postgres')['POSTGRES_INITDB_ARGS']?.split(' ')).toEqual(LOCALE);
  });

  test('has a role for each service and each owner, and none reaches the other database', async ({
    environmentOf,
    project,
  }) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'compose-'));
    chmodSync(folder, 0o755);
    const program = await postgresProgram(async () => folder);
    const cluster = await startCluster({ program, directory: folder, settings: { fsync: 'off' } });
    try {
      await createRoles(cluster.serverUrl, project.configs['roles']?.content ?? '', environmentOf('postgres'));
      const here = (address = ''): string =>
        Object.assign(new URL(address), { host: `127.0.0.1:${cluster.port}` }).href;
      const query = async (address: string, statement: string): Promise<unknown> => {
        const client = new pg.Client({ connectionString: address });
        await client.connect();
        return await client.query(statement).finally(() => client.end());
      };
      for (const [name, api, other] of [
        ['migrate', 'api', 'settlement_sandbox'],
        ['sandbox-migrate', 'sandbox-api', 'settlement'],
      ] as const) {
        const { databaseUrl, migrationUrl } = loadMigrationConfig(environmentOf(name));
        await migrate({ databaseUrl: here(databaseUrl), migrationUrl: here(migrationUrl) });
        const service = here(environmentOf(api)['DATABASE_URL']);
        await query(service, 'SELECT 1 FROM settlements');
        for (const statement of ['DELETE FROM postings', 'DROP TABLE postings CASCADE', 'CREATE TABLE own (id text)'])
          await expect(query(service, statement), `${api}: ${statement}`).rejects.toMatchObject({ code: '42501' });
        for (const address of [service, here(migrationUrl)])
          await expect(
            query(Object.assign(new URL(address), { pathname: `/${other}` }).href, 'SELECT 1'),
          ).rejects.toMatchObject({ code: '42501' });
      }
    } finally {
      await cluster.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** What the script does, as the superuser `postgres`. The cluster's own superuser has a name that the script uses. */
async function createRoles(serverUrl: string, script: string, environment: Environment): Promise<void> {
  const statements = /<<SQL\n([\s\S]*)\nSQL\n/.exec(script)?.[1]?.split(/;\n?/) ?? [];
  const password = randomBytes(16).toString('hex');
  const own = new pg.Client({ connectionString: `${serverUrl}/postgres` });
  await own.connect();
  await own.query(`CREATE ROLE postgres SUPERUSER LOGIN PASSWORD '${password}'`).finally(() => own.end());
  const address = Object.assign(new URL(`${serverUrl}/postgres`), { username: 'postgres', password });
  const postgres = new pg.Client({ connectionString: address.href });
  await postgres.connect();
  try {
    await postgres.query('ALTER ROLE settlement RENAME TO cluster_owner');
    for (const statement of statements)
      await postgres.query(statement.replace(/\$([A-Z_]+)/g, (_, name: string) => environment[name] ?? ''));
  } finally {
    await postgres.end();
  }
}
