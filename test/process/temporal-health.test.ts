/** What Temporal answers wrongly: how it is named, and what a worker puts back. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type Client, ScheduleAlreadyRunning } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { TransportError } from '@temporalio/worker';
import { expect, test, vi } from 'vitest';
import { temporalFault } from '../../domain/temporal-health.ts';
import { SWEEP_ID } from '../../domain/workflow-id.ts';
import { createSweepSchedule } from '../../process/sweep-schedule.ts';
import { connectTemporal } from '../../process/temporal.ts';
import { temporalFaultOf } from '../../process/temporal-health.ts';
import { prepareTemporal, watchTemporal } from '../../worker/temporal-watch.ts';
import { WAIT } from '../support/patience.ts';
import { testDevServer, workerConfig } from '../support/temporal.ts';

/** INDEXED_VALUE_TYPE_TEXT of Temporal's API. */
const TEXT = 1;
const RETENTION = { workflowExecutionRetentionPeriod: msToTs(86_400_000) };

const payloadKey = (id: string) => ({ id, key: randomBytes(32) });

const EMPTY_MESSAGE = Buffer.alloc(5);

/** Answers each call with a code of gRPC, and with an empty message where that is 0. */
async function startAnswering(codeOf: (method: string) => number): Promise<{ address: string; close(): void }> {
  const server = createServer().on('stream', (stream, { ':path': path = '' }) => {
    const code = codeOf(path.slice(path.lastIndexOf('/') + 1));
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': `${code}`, 'grpc-message': 'no' }));
    stream.end(code === 0 ? EMPTY_MESSAGE : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

async function healthAt(address: string, { namespace = 'missing', tls = false } = {}) {
  const { connectionOptions } = workerConfig({ address, namespace }).temporal;
  const temporal = connectTemporal({
    temporal: { connectionOptions: { ...connectionOptions, tls }, namespace },
    payloadKeys: undefined,
  });
  return await temporal.health().finally(temporal.close);
}

test('a refusal of Temporal is named: the credential, the right, TLS, the namespace, and who does not answer', async () => {
  const servers = { right: await startAnswering(() => 7), credential: await startAnswering(() => 16) };
  const { address } = await testDevServer();
  expect({
    right: await healthAt(servers.right.address),
    credential: await healthAt(servers.credential.address),
    tls: await healthAt(servers.right.address.replace('127.0.0.1', 'localhost'), { tls: true }),
    namespace: await healthAt(address),
    nobody: await healthAt('127.0.0.1:1'),
  }).toEqual({
    right: temporalFault('right_missing', 'no'),
    credential: temporalFault('credentials_refused', 'no'),
    tls: { status: 'down', cause: 'tls_failed', sentence: expect.stringContaining('wrong version number') },
    namespace: temporalFault('namespace_missing', 'missing'),
    nobody: {
      status: 'degraded',
      cause: 'not_answering',
      sentence: expect.stringMatching(/ECONNREFUSED 127\.0\.0\.1:1$/),
    },
  });
  for (const server of Object.values(servers)) server.close();
});

test.for([7, 12])('a credential that may not list the search attributes may use them: code %s', async (code) => {
  const codes: Readonly<Record<string, number>> = { ListSearchAttributes: code, SignalWorkflowExecution: 5 };
  const server = await startAnswering((method) => codes[method] ?? 0);
  expect(await healthAt(server.address)).toEqual({ status: 'up', cause: null });
  server.close();
});

test.for([
  [14, 'No connection established. Last error: Error: self-signed certificate.', 'tls_failed'],
  [14, "Last error: Error [ERR_TLS_CERT_ALTNAME_INVALID]: Host is not in the cert's altnames", 'tls_failed'],
  [14, 'error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required', 'tls_failed'],
  [14, 'Name resolution failed for target dns:temporal:7233', 'not_answering'],
  [4, 'Deadline exceeded', 'not_answering'],
  [3, 'Namespace x has no mapping defined for search attribute OrgId', 'search_attributes_missing'],
  [3, 'Invalid schedule', undefined],
  [5, 'workflow not found for ID: x', undefined],
] as const)('an error of a call with code %s, "%s", is %s', ([code, details, cause]) => {
  expect(temporalFaultOf(Object.assign(new Error('grpc'), { code, details, metadata: {} }))?.cause).toBe(cause);
});

test.for([
  ['tonic::transport::Error(Transport, NativeCertsNotFound)', 'tls_failed'],
  ['tonic::transport::Error(Transport, PrivateKeyParseError)', 'tls_failed'],
  ['Custom { kind: InvalidData, error: InvalidCertificate(UnknownIssuer) }', 'tls_failed'],
  ['ConnectError("tcp connect error", 127.0.0.1:1, Os { code: 111, kind: ConnectionRefused })', 'not_answering'],
] as const)("an error of the worker's connection, %s, is %s", ([message, cause]) => {
  expect(temporalFaultOf(new TransportError(message))?.cause).toBe(cause);
});

test('a search attribute of another type is named', async () => {
  const { address } = await testDevServer();
  const namespace = `typed-${crypto.randomUUID()}`;
  const temporal = connectTemporal(workerConfig({ address, namespace }));
  const { workflowService, operatorService } = temporal.client.connection;
  await workflowService.registerNamespace({ namespace, ...RETENTION });
  await vi.waitFor(() => operatorService.addSearchAttributes({ namespace, searchAttributes: { OrgId: TEXT } }), WAIT);
  const other = temporalFault('search_attributes_of_other_type', 'OrgId');
  await vi.waitFor(async () => expect(await temporal.health()).toEqual(other), WAIT);
  await temporal.close();
});

test("a worker makes the sweep's schedule like that of its version, and an operator's pause stays", async () => {
  const { address } = await testDevServer();
  const namespace = `schedule-${crypto.randomUUID()}`;
  const temporal = connectTemporal(workerConfig({ address, namespace }));
  await temporal.client.connection.workflowService.registerNamespace({ namespace, ...RETENTION });
  await vi.waitFor(() => createSweepSchedule(temporal), WAIT);
  const schedule = temporal.client.schedule.getHandle(SWEEP_ID);
  await schedule.update((made) => ({ ...made, policies: { ...made.policies, overlap: 'ALLOW_ALL' } }));
  // Temporal may apply a pause before an update that was sent earlier.
  await vi.waitUntil(async () => (await schedule.describe()).policies.overlap === 'ALLOW_ALL', WAIT);
  await schedule.pause('an incident');
  await vi.waitUntil(async () => (await schedule.describe()).state.paused, WAIT);
  await prepareTemporal(temporal);
  const { state, policies, action } = await schedule.describe();
  expect([state.paused, policies.overlap, policies.catchupWindow]).toEqual([true, 'SKIP', 10_000]);
  expect(action.workflowRunTimeout).toBe(30 * 60_000);
  await temporal.close();
});

test.for([
  ['that was removed', 'key-2'],
  ['because encryption is switched off', undefined],
] as const)(
  "a worker that lacks the key of the sweep's schedule, %s, replaces the schedule, and an operator's pause stays",
  async ([, newId]) => {
    const { address } = await testDevServer();
    const namespace = `resealed-${crypto.randomUUID()}`;
    const config = workerConfig({ address, namespace });
    const before = connectTemporal({ ...config, payloadKeys: [payloadKey('key-1')] });
    await before.client.connection.workflowService.registerNamespace({ namespace, ...RETENTION });
    await vi.waitFor(() => createSweepSchedule(before), WAIT);
    const made = before.client.schedule.getHandle(SWEEP_ID);
    await made.pause('an incident');
    await vi.waitUntil(async () => (await made.describe()).state.paused, WAIT);
    await before.close();
    const temporal = connectTemporal({ ...config, payloadKeys: newId && [payloadKey(newId)] });
    await prepareTemporal(temporal);
    const { state, action } = await temporal.client.schedule.getHandle(SWEEP_ID).describe();
    expect([state.paused, state.note, action.args]).toEqual([true, 'an incident', [{ sweeps: 30 }]]);
    await temporal.close();
  },
);

test('a worker says once that the namespace is missing, and puts attributes and schedule back into a new one', async () => {
  const { address } = await testDevServer();
  const namespace = `watch-${crypto.randomUUID()}`;
  const temporal = connectTemporal(workerConfig({ address, namespace }));
  const { workflowService, operatorService } = temporal.client.connection;
  const log = { info: vi.fn(), warn: vi.fn() };
  const watch = watchTemporal({ temporal, log, lookMs: 50 });
  const schedule = temporal.client.schedule.getHandle(SWEEP_ID);
  const untilWhole = async () => {
    await vi.waitFor(() => schedule.describe(), WAIT);
    await vi.waitFor(async () => expect(await temporal.health()).toEqual({ status: 'up', cause: null }), WAIT);
  };
  const missing = { address, namespace, cause: 'namespace_missing' };
  const countMissing = () => log.warn.mock.calls.filter(([fields]) => fields.cause === 'namespace_missing').length;
  await vi.waitFor(
    () => expect(log.warn).toHaveBeenCalledWith(expect.objectContaining(missing), expect.anything()),
    WAIT,
  );

  await workflowService.registerNamespace({ namespace, ...RETENTION });
  await watch.up;
  await untilWhole();
  await schedule.delete();
  await untilWhole();

  await operatorService.deleteNamespace({ namespace });
  await vi.waitFor(() => expect(countMissing()).toBeGreaterThan(1), WAIT);
  await workflowService.registerNamespace({ namespace, ...RETENTION });
  await untilWhole();
  await watch.stop();
  await temporal.close();
  expect(countMissing(), JSON.stringify(log.warn.mock.calls)).toBeLessThanOrEqual(4);
  expect(log.info).toHaveBeenCalledWith({ address, namespace }, 'Temporal can be used again');
});

test.for([
  ['may not add the search attributes', { AddSearchAttributes: 7 }, 'search_attributes_missing'],
  ['may not make the schedule', { ListSearchAttributes: 7, CreateSchedule: 7 }, 'right_missing'],
] as const)('a worker that %s says so, and does not count Temporal as up', async ([, refused, cause]) => {
  const codes: Readonly<Record<string, number>> = { SignalWorkflowExecution: 5, ...refused };
  const server = await startAnswering((method) => codes[method] ?? 0);
  const temporal = connectTemporal(workerConfig({ address: server.address, namespace: 'any' }));
  const log = { info: vi.fn(), warn: vi.fn() };
  const watch = watchTemporal({ temporal, log });
  await vi.waitFor(() => expect(log.warn).toHaveBeenCalled(), WAIT);
  await watch.stop();
  await temporal.close();
  server.close();
  expect(log.warn.mock.calls.map(([fields]) => fields.cause)).toEqual([cause]);
});

test('what is wrong is logged at once when it changes, and again each minute while it lasts', async ({
  onTestFinished,
}) => {
  let cause: 'right_missing' | 'not_answering' = 'right_missing';
  const temporal = {
    ...connectTemporal(workerConfig({ address: '127.0.0.1:1', namespace: 'any' })),
    health: async () => temporalFault(cause, ''),
  };
  const log = { info: vi.fn(), warn: vi.fn() };
  const causes = () => log.warn.mock.calls.map(([fields]) => fields.cause);
  const watch = watchTemporal({ temporal, log, lookMs: 5 });
  await vi.waitUntil(() => causes().length === 1, WAIT);
  cause = 'not_answering';
  await vi.waitUntil(() => causes().length === 2, WAIT);
  const measured = performance.now.bind(performance);
  const later = vi.spyOn(performance, 'now').mockImplementation(() => measured() + 60_000);
  onTestFinished(() => later.mockRestore());
  await vi.waitUntil(() => causes().length === 3, WAIT);
  await watch.stop();
  await temporal.close();
  expect(causes()).toEqual(['right_missing', 'not_answering', 'not_answering']);
});

test('a schedule of an earlier version that could not be changed at first is changed at the next look, once', async () => {
  const update = vi.fn().mockRejectedValueOnce(new Error('conflict')).mockResolvedValue(undefined);
  const create = vi.fn().mockRejectedValue(new ScheduleAlreadyRunning('it exists', SWEEP_ID));
  const temporal = {
    client: {
      withDeadline: (_at: number, call: () => unknown) => call(),
      schedule: { create, getHandle: () => ({ update }) },
    } as unknown as Client,
    address: 'any',
    namespace: 'any',
    health: async () => ({ status: 'up', cause: null }) as const,
    addSearchAttributes: async () => undefined,
  };
  const log = { info: vi.fn(), warn: vi.fn() };
  const watch = watchTemporal({ temporal, log, lookMs: 5 });
  await vi.waitUntil(() => create.mock.calls.length > 4, WAIT);
  await watch.stop();
  expect(update).toHaveBeenCalledTimes(2);
  expect(log.warn.mock.calls.map(([, message]) => message)).toEqual(['the schedule of the sweep could not be written']);
});

test('a worker that stops before Temporal is up waits for it no longer', async () => {
  const { address } = await testDevServer();
  const temporal = connectTemporal(workerConfig({ address, namespace: `none-${crypto.randomUUID()}` }));
  const log = { info: vi.fn(), warn: vi.fn() };
  const watch = watchTemporal({ temporal, log });
  await vi.waitFor(() => expect(log.warn).toHaveBeenCalled(), WAIT);
  await watch.stop();
  await watch.up;
  await temporal.close();
});
