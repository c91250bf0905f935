/** The worker's process while what it needs is missing: its health endpoints, its log, and its end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { msToTs } from '@temporalio/common/lib/time.js';
import { expect, vi } from 'vitest';
import { repositoryRoot } from '../../process/local/place.ts';
import { createReadiness, createWorkerReadiness } from '../../process/readiness.ts';
import { compiledPrograms } from '../../scripts/stack/compiled.ts';
import { freePort } from '../../scripts/stack/port.ts';
import { processSecrets } from '../support/api-process.ts';
import { withApi } from '../support/fixture.ts';
import { WAIT } from '../support/patience.ts';
import { devServer } from '../support/temporal.ts';

const test = withApi();
const silent = { warn: () => undefined };

test('a worker is ready with a right clock, Temporal up and its pollers running, and not without one of them', async ({
  api,
}) => {
  const up = { status: 'up', cause: null } as const;
  const down = { status: 'down', cause: 'right_missing', sentence: '' } as const;
  const readinessOf = async ({ offMs = 0, temporal = up as typeof up | typeof down, polls = true }) => {
    const now = () => new Date(Date.now() + offMs);
    const readiness = createReadiness({
      db: api.connection.db,
      now,
      log: silent,
      temporalHealth: async () => temporal,
    });
    return await createWorkerReadiness(readiness, () => polls)();
  };
  expect(await readinessOf({})).toMatchObject({ status: 'ready', pollers: 'running', temporal: 'up' });
  expect(await readinessOf({ offMs: 6_000 })).toMatchObject({ status: 'not_ready', pollers: 'running' });
  expect(await readinessOf({ polls: false })).toMatchObject({ status: 'not_ready', pollers: 'stopped' });
  expect(await readinessOf({ temporal: down })).toMatchObject({
    status: 'not_ready',
    postgres: 'up',
    temporal: 'down',
    temporal_cause: 'right_missing',
  });
});

test('a worker without its namespace lives, is not ready and says why; it is ready once the namespace is there', async ({
  api,
  onTestFinished,
}) => {
  const server = await devServer();
  onTestFinished(server.close);
  const namespace = `worker-${crypto.randomUUID()}`;
  const [{ worker: program }, port] = [await compiledPrograms(['worker'], 'with packages'), await freePort()];
  const env = {
    ...process.env,
    ...processSecrets(),
    RUNTIME_ENVIRONMENT: 'local-sandbox',
    DATABASE_URL: api.databaseUrl,
    TEMPORAL_ADDRESS: server.address,
    TEMPORAL_NAMESPACE: namespace,
    METRICS_PORT: String(port - 1),
  };
  const child: ChildProcess = spawn(process.execPath, [program], {
    cwd: repositoryRoot,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let log = '';
  child.stdout?.on('data', (chunk) => {
    log += chunk;
  });
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/health/${path}`);
    return { code: answer.status, ...((await answer.json()) as object) };
  };
  const missing = { temporal: 'down', temporal_cause: 'namespace_missing', pollers: 'stopped' };
  await vi.waitFor(async () => expect(await ask('ready')).toMatchObject({ code: 503, ...missing }), WAIT);
  expect(await ask('live')).toEqual({ code: 200, status: 'live' });
  const said = log.split('\n').filter((line) => line.includes('"the worker cannot use Temporal"'));
  expect(said.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ address: server.address, namespace, cause: 'namespace_missing' }),
  ]);

  const retention = { workflowExecutionRetentionPeriod: msToTs(86_400_000) };
  await server.client.connection.workflowService.registerNamespace({ namespace, ...retention });
  const ready = { code: 200, status: 'ready', temporal: 'up', temporal_cause: null, pollers: 'running' };
  await vi.waitFor(async () => expect(await ask('ready')).toMatchObject(ready), WAIT);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});
