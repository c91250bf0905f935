import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { type History, historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { type ReplayWorkerOptions, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { repositoryRoot } from '../../process/place.ts';
import { loadTracing, type Tracing } from '../../process/tracing.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { type Caller, TEST_SECRETS } from '../support/api.ts';
import { type CollectedSpan, type Collector, startCollector } from '../support/collector.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { testWorkflowBundle } from '../support/temporal.ts';
import { type Receiver, startReceiver, subscribe, until } from '../support/webhook.ts';

const STRANGERS_TRACE = 'aaaabbbbccccddddaaaabbbbccccdddd';

let collector: Collector;
let tracing: Tracing;
let stack: TestStack;
let caller: Caller;
let receiver: Receiver;
let settlementId: string;
let secret: string;

const spansNamed = (name: string): CollectedSpan[] => collector.spans().filter((span) => span.name === name);
const attributeOf = (span: CollectedSpan | undefined, key: string): string | undefined =>
  span?.attributes.find((attribute) => attribute.key === key)?.value.stringValue;

/** One settlement with a subscriber, to its end and the end of what follows from it; then everything is sent. */
beforeAll(async () => {
  collector = await startCollector();
  const started = await loadTracing(
    { otlpEndpoint: collector.url },
    { service: 'test', log: { warn: () => undefined } },
  );
  if (!started) throw new Error('no traces are kept');
  tracing = started;
  stack = await startStack({ tracing, deliveries: true });
  caller = await stack.api.createCaller();
  receiver = await startReceiver();
  secret = (await subscribe(stack.api, caller, receiver.url, ['settlement.settled'])).secret;
  const body = settleBody(await createRecipient(stack, caller));
  const headers = { 'idempotency-key': crypto.randomUUID(), traceparent: `00-${STRANGERS_TRACE}-bbbbccccddddeeee-01` };
  settlementId = jsonOf(await stack.api.call(caller, 'POST', '/v2/settle', body, headers)).settlement_id;
  await untilStatus(stack, caller, settlementId, 'settled');
  await until(
    async () => {
      await tracing.flush();
      return spansNamed('RunWorkflow:webhookDelivery').length;
    },
    (deliveries) => deliveries === 1,
  );
}, 90_000);

afterAll(async () => {
  await stack.close();
  await tracing.close();
  await receiver.close();
  await collector.close();
});

describe('traces', () => {
  test('one settlement is one trace: request, dispatch, workflow, activities, delivery', () => {
    const [request] = spansNamed('POST /v2/settle');
    const trace = collector.spans().filter(({ traceId }) => traceId === request?.traceId);
    const parentOf = (span: CollectedSpan) => trace.find(({ spanId }) => spanId === span.parentSpanId);
    const above = (name: string): string[] => {
      const names: string[] = [];
      for (let span = trace.find((candidate) => candidate.name === name); span; span = parentOf(span))
        names.push(span.name);
      return names.reverse();
    };
    expect(trace.filter((span) => !parentOf(span)).map(({ name }) => name)).toEqual(['POST /v2/settle']);
    const settling = ['POST /v2/settle', 'dispatch settlement', 'StartWorkflow:settlement', 'RunWorkflow:settlement'];
    const paying = [...settling, 'StartActivity:sendPayout', 'RunActivity:sendPayout'];
    expect(above('RunActivity:admitSettlement')).toEqual([
      ...settling,
      'StartActivity:admitSettlement',
      'RunActivity:admitSettlement',
    ]);
    expect(above('RunActivity:sendPayout')).toEqual(paying);
    expect(above('POST to subscriber')).toEqual([
      ...paying,
      'dispatch webhook_delivery',
      'StartWorkflow:webhookDelivery',
      'RunWorkflow:webhookDelivery',
      'StartActivity:attemptDelivery',
      'RunActivity:attemptDelivery',
      'POST to subscriber',
    ]);
  });

  test('the ids of organization, settlement and workflow lead from the one to the other', () => {
    expect(attributeOf(spansNamed('POST /v2/settle')[0], 'organization.id')).toBe(caller.orgId);
    expect(attributeOf(spansNamed('dispatch settlement')[0], 'settlement.id')).toBe(settlementId);
    expect(attributeOf(spansNamed('RunWorkflow:settlement')[0], 'workflow.id')).toBe(
      settlementWorkflowId(settlementId),
    );
  });

  test("a stranger's trace is not joined, and a subscriber is told of none", () => {
    expect(collector.bodies.join('')).not.toContain(STRANGERS_TRACE);
    expect(receiver.received).toHaveLength(1);
    expect(
      Object.keys(receiver.received[0]?.headers ?? {}).filter((name) => name.startsWith('trace') || name === 'baggage'),
    ).toEqual([]);
  });

  test('nothing personal and no secret is in them, of whatever was answered how', async () => {
    const refused = [
      await stack.api.call(null, 'GET', '/v1/recipients/Marcia%20Brown?name=Marcia%20Brown', undefined, {
        'x-api-key': 'sk_wrong_key',
      }),
      await stack.api.call(caller, 'GET', '/v1/recipients/Marcia%20Brown'),
      await stack.api.call(caller, 'GET', '/Marcia%20Brown'),
      await stack.api.call(caller, 'POST', '/v1/recipients', { name: 'Marcia Brown', country: 'Jamaica' }),
    ];
    expect(refused.map(({ statusCode }) => statusCode)).toEqual([401, 404, 404, 422]);
    await until(
      async () => {
        await tracing.flush();
        return spansNamed('POST /v1/recipients').length;
      },
      (requests) => requests === 2,
    );
    const sent = collector.bodies.join('\n');
    const personal = ['Marcia', 'Brown', 'Acme', '123456789', 'tok_visa', '250.00', 'dev@acme'];
    const secrets = [
      caller.apiKey,
      'sk_wrong_key',
      secret,
      'query-secret',
      TEST_SECRETS.cardproc,
      TEST_SECRETS.apiKeyPepper.secret,
    ];
    expect([...personal, ...secrets].filter((text) => sent.includes(text))).toEqual([]);
    const keys = collector
      .spans()
      .flatMap(({ attributes, events }) =>
        [...attributes, ...events.flatMap((event) => event.attributes)].map(({ key }) => key),
      );
    expect([...new Set(keys)].sort()).toEqual([
      'activity.id',
      'error.type',
      'event.id',
      'http.request.method',
      'http.response.status_code',
      'http.route',
      'organization.id',
      'outbox.attempts',
      'request.id',
      'settlement.id',
      'workflow.id',
      'workflow.run_id',
    ]);
  });

  test('a probe leaves none', async () => {
    await stack.api.call(null, 'GET', '/health/live');
    await stack.api.call(null, 'GET', '/v1/caribbean/corridors');
    await until(
      async () => {
        await tracing.flush();
        return spansNamed('GET /v1/caribbean/corridors').length;
      },
      (requests) => requests === 1,
    );
    expect(spansNamed('GET /health/live')).toEqual([]);
  });
});

/** Which of them cannot be replayed, and why. */
async function faultsOfReplay(
  options: ReplayWorkerOptions,
  histories: { workflowId: string; history: History }[],
): Promise<string[]> {
  const faults: string[] = [];
  for await (const { workflowId, error } of Worker.runReplayHistories(options, histories))
    if (error) faults.push(`${workflowId}: ${error.message}`);
  return faults;
}

describe('runs of workflows', () => {
  const HISTORIES = path.join(repositoryRoot, 'test/workflows/histories');
  const recorded = readdirSync(HISTORIES).filter((file) => file.endsWith('.json'));

  test('that began without traces replay where they are kept, on every recorded path', async () => {
    const bundle = await workflowBundle({ traced: true });
    expect(recorded.length).toBeGreaterThan(15);
    const histories = recorded.map((file) => ({
      workflowId: file,
      history: historyFromJSON(JSON.parse(readFileSync(path.join(HISTORIES, file), 'utf8'))),
    }));
    expect(await faultsOfReplay({ workflowBundle: bundle, ...tracing.worker }, histories)).toEqual([]);
  }, 60_000);

  test('that began where traces are kept replay without them', async () => {
    const ids = collector
      .spans()
      .flatMap((span) => (span.name.startsWith('StartWorkflow:') ? (attributeOf(span, 'workflow.id') ?? []) : []));
    const histories = await Promise.all(
      ids.map(async (workflowId) => ({
        workflowId,
        history: await stack.temporal.workflow.getHandle(workflowId).fetchHistory(),
      })),
    );
    expect(histories.length).toBeGreaterThanOrEqual(3);
    for (const { history } of histories)
      expect(history.events?.[0]?.workflowExecutionStartedEventAttributes?.header?.fields).toHaveProperty(
        '_tracer-data',
      );
    expect(await faultsOfReplay({ workflowBundle: await testWorkflowBundle() }, histories)).toEqual([]);
  });
});

/** What a process that has all of the service has of OpenTelemetry, but for the interface that the metrics bring: without an endpoint, then with one. */
const PROGRAM = `
  import { createRequire } from 'node:module';
  for (const file of ['./api/app.ts', './worker/worker.ts', './process/dispatcher.ts']) await import(file);
  const { loadTracing } = await import('./process/tracing.ts');
  const loaded = () => Object.keys(createRequire(import.meta.url).cache).filter((file) => /@opentelemetry.(?!api.)|interceptors-opentelemetry/.test(file));
  const options = { service: 'test', log: console };
  await loadTracing({ otlpEndpoint: undefined }, options);
  const without = loaded();
  await loadTracing({ otlpEndpoint: 'http://127.0.0.1:9' }, options);
  process.stdout.write(JSON.stringify([without, loaded().length]));
  process.exit(0);`;

test('nothing of OpenTelemetry is loaded where no endpoint is configured', async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', PROGRAM],
    { cwd: repositoryRoot },
  );
  const [without, withOne]: [string[], number] = JSON.parse(stdout);
  expect(without).toEqual([]);
  expect(withOne).toBeGreaterThan(20);
}, 60_000);
