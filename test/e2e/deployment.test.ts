/**
 * The processes as deploy/kubernetes starts them: commands, variables, secrets in files, probes, and their end. What
 * differs: the addresses of PostgreSQL and Temporal, the ports, the place of the files, and programs that are compiled.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';
import { msToTs } from '@temporalio/common/lib/time.js';
import { expect, vi } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { withDatabase } from '../support/fixture.ts';
import { buildKustomization, environmentOf, type Resource } from '../support/kustomize.ts';
import { WAIT } from '../support/patience.ts';
import { testPrograms } from '../support/program.ts';
import { devServer } from '../support/temporal.ts';

const RESOURCES = buildKustomization('deploy/kubernetes/example');
const podOf = (app: string): Resource =>
  RESOURCES.find(({ kind, metadata }) => kind !== 'Service' && metadata.labels?.['app'] === app) ??
  expect.unreachable();
const containerOf = (app: string) => podOf(app).spec?.template?.spec.containers[0] ?? expect.unreachable();

const fixture = (name: string): string => path.join(repositoryRoot, 'test/fixtures', name);
/** Encrypts the way to a server of this machine, which itself has no certificate. */
async function startTls(address: string): Promise<{ readonly address: string; close(): void }> {
  const [key, cert] = [readFileSync(fixture('partner.key.pem')), readFileSync(fixture('partner.crt.pem'))];
  const target = Number(address.split(':').at(-1));
  const server = createServer({ key, cert, ALPNProtocols: ['h2'] }, (near) => {
    const far = connect(target, '127.0.0.1');
    near.on('error', () => far.destroy()).pipe(far);
    far.on('error', () => near.destroy()).pipe(near);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

type Probe = { readonly httpGet: { readonly path: string; readonly port: string } };
const key = () => `k1:${randomBytes(32).toString('base64')}`;
const text = () => randomBytes(32).toString('hex');
/** What an operator puts into the secrets `service` and `migrate`, the same for all processes of the database. */
const SECRETS: Readonly<Record<string, string>> = {
  TEMPORAL_API_KEY: text(),
  API_KEY_PEPPER: text(),
  ENCRYPTION_KEYS: key(),
  CERTIFICATE_SIGNING_KEY: key(),
  CARDPROC_WEBHOOK_SECRET: text(),
  BANKLEDGER_WEBHOOK_SECRET: text(),
  IDVERIFY_WEBHOOK_SECRET: text(),
};

const test = withDatabase().extend('deployment', async ({ database }, { onCleanup }) => {
  const server = await devServer();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'deployment-'));
  const [port, apiMetrics, workerMetrics] = [await freePort(), await freePort(), await freePort()];
  const programs = await testPrograms();
  const namespace = `deployed-${randomBytes(6).toString('hex')}`;
  const secrets: Readonly<Record<string, string>> = {
    ...SECRETS,
    DATABASE_URL: database.databaseUrl,
    MIGRATION_DATABASE_URL: database.migrationUrl,
  };
  const environment = async (app: string): Promise<NodeJS.ProcessEnv> => {
    const given = Object.entries(environmentOf(RESOURCES, podOf(app)));
    const placed = await Promise.all(
      given.map(async ([name, value]) => {
        if (!name.endsWith('_FILE')) return [name, value];
        const file = path.join(folder, value);
        await mkdir(path.dirname(file), { recursive: true });
        await writeFile(file, `${secrets[name.slice(0, -'_FILE'.length)] ?? expect.unreachable(name)}\n`);
        return [name, file];
      }),
    );
    return {
      PATH: process.env['PATH'],
      ...Object.fromEntries(placed),
      PORT: String(port),
      METRICS_PORT: String(app === 'api' ? apiMetrics : workerMetrics - 1),
      TEMPORAL_ADDRESS: server.address,
      TEMPORAL_NAMESPACE: namespace,
      // The test's servers are on this machine, and have no certificates.
      TEMPORAL_TLS: 'false',
    };
  };
  const children: ChildProcess[] = [];
  onCleanup(async () => {
    for (const child of children) child.kill('SIGKILL');
    await server.close();
    await rm(folder, { recursive: true });
  });
  const migrate = async (): Promise<void> => {
    expect(containerOf('migrate').command).toEqual(['node', 'ops/migrate.ts']);
    const options = { cwd: repositoryRoot, env: await environment('migrate') };
    await promisify(execFile)(process.execPath, ['--import', 'tsx', 'ops/migrate.ts'], options);
  };
  const registerNamespace = async (): Promise<void> => {
    const retention = { workflowExecutionRetentionPeriod: msToTs(86_400_000) };
    await server.client.connection.workflowService.registerNamespace({ namespace, ...retention });
  };
  const start = async (app: 'api' | 'worker', changes: NodeJS.ProcessEnv = {}) => {
    expect(containerOf(app).command).toEqual(['node', `${app}/main.ts`]);
    const child = spawn(process.execPath, [programs[app]], {
      cwd: repositoryRoot,
      env: { ...(await environment(app)), ...changes },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    let log = '';
    child.stdout?.on('data', (chunk) => {
      log += chunk;
    });
    const probed: Readonly<Record<string, number>> = {
      http: port,
      metrics: app === 'api' ? apiMetrics : workerMetrics,
    };
    const probe = async (name: 'startupProbe' | 'livenessProbe' | 'readinessProbe') => {
      const { httpGet } = containerOf(app)[name] as Probe;
      const answer = await fetch(`http://127.0.0.1:${probed[httpGet.port]}${httpGet.path}`);
      return { code: answer.status, ...((await answer.json()) as object) };
    };
    const until = (name: 'startupProbe' | 'readinessProbe', wanted: object) =>
      vi.waitFor(async () => expect(await probe(name)).toMatchObject(wanted), WAIT);
    /** As Kubernetes does after preStop, with what is left of the grace. */
    const end = async (): Promise<void> => {
      const grace = Number(podOf(app).spec?.template?.spec['terminationGracePeriodSeconds']);
      const preStop = app === 'api' ? 10 : 0;
      const startedMs = Date.now();
      child.kill('SIGTERM');
      expect(await once(child, 'exit')).toEqual([0, null]);
      expect(Date.now() - startedMs).toBeLessThan((grace - preStop) * 1_000);
    };
    const metrics = async (): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${probed['metrics']}/metrics`);
      return await answer.text();
    };
    const linesWith = (message: string) =>
      log
        .split('\n')
        .filter((line) => line.includes(`"${message}"`))
        .map((line) => JSON.parse(line) as object);
    return { probe, until, end, metrics, linesWith };
  };
  return { server, namespace, migrate, registerNamespace, start };
});

test('the manifests start processes that wait for their namespace, say so, serve, and end in time', async ({
  deployment: { server, namespace, migrate, registerNamespace, start },
  owner,
}) => {
  await migrate();

  const [api, worker] = [await start('api'), await start('worker')];
  const missing = { temporal: 'down', temporal_cause: 'namespace_missing' };
  await api.until('startupProbe', { code: 200, status: 'live' });
  await api.until('readinessProbe', { code: 200, status: 'ready', ...missing });
  // A burst finds them open. The first requests would pay for each of them.
  const { rowCount } = await owner.pool.query(
    `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'settlement-api'`,
  );
  expect(rowCount).toBeGreaterThanOrEqual(20);
  await worker.until('startupProbe', { code: 200, status: 'live' });
  await worker.until('readinessProbe', { code: 503, status: 'not_ready', ...missing, pollers: 'stopped' });
  expect(await worker.probe('livenessProbe')).toEqual({ code: 200, status: 'live' });
  expect(worker.linesWith('the worker cannot use Temporal')).toEqual([
    expect.objectContaining({ address: server.address, namespace, cause: 'namespace_missing' }),
  ]);

  await registerNamespace();
  await worker.until('readinessProbe', { code: 200, status: 'ready', temporal: 'up', pollers: 'running' });
  await Promise.all([api.end(), worker.end()]);
});

test('a worker whose own connection to Temporal fails says why, and its metric too, also when its other calls succeed', async ({
  deployment: { server, migrate, registerNamespace, start },
  onTestFinished,
}) => {
  const tls = await startTls(server.address);
  onTestFinished(tls.close);
  await Promise.all([migrate(), registerNamespace()]);
  const worker = await start('worker', {
    TEMPORAL_ADDRESS: tls.address,
    TEMPORAL_TLS: 'true',
    TEMPORAL_TLS_SERVER_NAME: 'hooks.partner.example',
    NODE_EXTRA_CA_CERTS: fixture('partner.crt.pem'),
    // Node's calls trust the line above, the worker's own connection the system's authorities: here, none.
    SSL_CERT_FILE: '/dev/null',
  });
  const failed = { temporal: 'down', temporal_cause: 'tls_failed' };
  await worker.until('readinessProbe', { code: 503, postgres: 'up', ...failed, pollers: 'stopped' });
  expect(await worker.metrics()).toMatch(/^settlement_temporal_up(\{.*\})? 0$/m);
  await worker.end();
});
