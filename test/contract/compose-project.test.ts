/**
 * The project that Compose loads from docker-compose.yml, with the secrets that the manual generates: which service has
 * which secret, and what the roles of the database can do. Compose's own loader is a Go program.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import pg from 'pg';
import { test as base, describe, expect } from 'vitest';
import { z } from 'zod';
import { loadConfig, loadMigrationConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { repositoryRoot } from '../../process/place.ts';
import { startCluster } from '../../scripts/stack/postgres.ts';
import { postgresProgram } from '../../scripts/stack/postgres-program.ts';
import { FILE } from '../support/fixture.ts';

/** The first run downloads and builds Compose's loader. */
const BUILD_TIMEOUT_MS = 300_000;
const hasGo = await execa('go', ['version'], { reject: false }).then(({ failed }) => !failed);

const Project = z.object({
  services: z.record(
    z.string(),
    z.looseObject({ environment: z.record(z.string(), z.string().nullable()).default({}) }),
  ),
  // A configuration that is a file of the repository has no content here.
  configs: z.record(z.string(), z.looseObject({ content: z.string().default('') })),
});
type Environment = Readonly<Record<string, string>>;

/** Secrets that only an operator can know, and the address that must be set beside one of them; a value for each. */
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
  const manual = readFileSync(path.join(repositoryRoot, 'docs/operations.md'), 'utf8');
  const script = /```sh\n(umask 077\n[^`]+)```/.exec(manual)?.[1] ?? '';
  const folder = mkdtempSync(path.join(os.tmpdir(), 'secrets-'));
  try {
    await execa('sh', ['-ec', script], { cwd: folder });
    const lines = readFileSync(path.join(folder, '.env'), 'utf8').trim().split('\n');
    return Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const compose = (env: Environment, ...args: string[]) =>
  execa('go', ['run', '-C', path.join(repositoryRoot, 'test/compose'), '.', ...args, '../../docker-compose.yml'], {
    env,
    reject: false,
  });

const test = base
  .extend('secrets', FILE, generateSecrets)
  .extend('project', FILE, async ({ secrets }) => {
    const { stdout, stderr } = await compose({ ...secrets, ...OPTIONAL }, '--json');
    return Project.parse(JSON.parse(stdout || stderr));
  })
  .extend('environmentOf', FILE, ({ project }) => (service: string): Environment => {
    const given = Object.entries(project.services[service]?.environment ?? {});
    return Object.fromEntries(given.flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
  });
describe.runIf(hasGo)('the project that Compose loads (needs Go)', () => {
  test.beforeAll(({ project: _ }) => undefined, BUILD_TIMEOUT_MS);

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

  test('has a role for each service and each owner, and none reaches the other database', { timeout: 60_000 }, async ({
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

  test('is refused for each image without a digest, and for none when each is pinned', async ({ secrets }) => {
    const open = await compose(secrets, '--pinned');
    expect([open.exitCode, open.stderr.match(/\S+:v?\d[\w.-]*/g)?.length]).toEqual([1, 7]);
    const names = [
      'NODE',
      'POSTGRES',
      'TEMPORAL_SERVER',
      'TEMPORAL_ADMIN_TOOLS',
      'TEMPORAL_UI',
      'PROMETHEUS',
      'GRAFANA',
    ];
    const pinned = Object.fromEntries(names.map((name) => [`${name}_IMAGE`, `any:1@sha256:${'0'.repeat(64)}`]));
    expect((await compose({ ...secrets, ...pinned }, '--pinned')).exitCode).toBe(0);
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
