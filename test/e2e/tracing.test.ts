/** Traces of one settlement with a subscriber, as a collector receives them. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { test as base, describe, expect } from 'vitest';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { repositoryRoot } from '../../process/local/place.ts';
import { loadTracing } from '../../process/tracing.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { type CollectedSpan, startCollector } from '../support/collector.ts';
import { FILE } from '../support/fixture.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { startStack } from '../support/stack.ts';
import { replayFaults, testWorkflowBundle } from '../support/temporal.ts';
import { startReceiver, subscribe, until } from '../support/webhook.ts';

/** A trace that a caller names; the service must not join it. */
const FOREIGN_TRACE = 'aaaabbbbccccddddaaaabbbbccccdddd';

const attributeOf = (span: CollectedSpan | undefined, key: string): string | undefined =>
  span?.attributes.find((attribute) => attribute.key === key)?.value.stringValue;

const test = base
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('collector', FILE, async ({}, { onCleanup }) => {
    const collector = await startCollector();
    onCleanup(collector.close);
    return collector;
  })
  .extend('tracing', FILE, async ({ collector }, { onCleanup }) => {
    const options = { service: 'test', log: { warn: () => undefined } };
    const tracing = await loadTracing(
      { otlp: { endpoint: collector.url, headers: 'authorization=Bearer%20of-test' } },
      options,
    );
    if (!tracing) throw new Error('there is no tracing');
    onCleanup(tracing.close);
    return tracing;
  })
  .extend('stack', FILE, async ({ tracing }, { onCleanup }) => {
    const stack = await startStack({ tracing, deliveries: true });
    onCleanup(stack.close);
    return stack;
  })
  .extend('partner', FILE, ({ stack }) => stack.api.createCaller())
  // biome-ignore lint/correctness/noEmptyPattern: vitest accepts nothing but a destructuring pattern here
  .extend('receiver', FILE, async ({}, { onCleanup }) => {
    const receiver = await startReceiver();
    onCleanup(receiver.close);
    return receiver;
  })
  .extend('spans', FILE, ({ collector, tracing }) => {
    const named = (name: string): CollectedSpan[] => collector.spans().filter((span) => span.name === name);
    return {
      named,
      /** Sends what has ended, until the collector has this many spans of the name. */
      untilSent: (name: string, count: number) =>
        until(
          async () => {
            await tracing.flush();
            return named(name).length;
          },
          (sent) => sent === count,
        ),
    };
  })
  /** One settlement that has settled and whose subscriber has its event; all spans of it are sent. */
  .extend('settled', FILE, async ({ stack, partner, receiver, spans }) => {
    const { secret } = await subscribe(stack.api, partner, receiver.url, ['settlement.settled']);
    const body = settleBody(await createRecipient(stack.api, partner));
    const headers = { 'idempotency-key': crypto.randomUUID(), traceparent: `00-${FOREIGN_TRACE}-bbbbccccddddeeee-01` };
    const accepted = jsonOf(await stack.api.call(partner, 'POST', '/v2/settle', body, headers));
    await untilStatus(stack.api, partner, accepted.settlement_id, 'settled');
    await spans.untilSent('POST to subscriber', 1);
    // The event is delivered while the workflow still ends.
    await spans.untilSent('RunWorkflow:settlement', 1);
    return { settlementId: String(accepted.settlement_id), secret: String(secret) };
  });
test.beforeAll(({ settled: _ }) => undefined);

describe('traces', () => {
  test('the collector gets the headers of the configuration with every request', ({ collector }) => {
    expect(collector.credentials).toEqual(new Set(['Bearer of-test']));
  });

  test('one settlement is one trace: request, dispatch, workflow, activities, delivery', ({ collector, spans }) => {
    const [request] = spans.named('POST /v2/settle');
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
    // A lane belongs to no event; each request belongs to the trace of its event.
    expect(above('POST to subscriber')).toEqual([...paying, 'POST to subscriber']);
  });

  test('spans name the ids of the organization, the settlement and the workflow', ({ partner, spans, settled }) => {
    expect(attributeOf(spans.named('POST /v2/settle')[0], 'organization.id')).toBe(partner.orgId);
    expect(attributeOf(spans.named('dispatch settlement')[0], 'settlement.id')).toBe(settled.settlementId);
    expect(attributeOf(spans.named('RunWorkflow:settlement')[0], 'workflow.id')).toBe(
      settlementWorkflowId(settled.settlementId),
    );
  });

  test('the trace of a caller is not joined, and a subscriber gets no trace', ({ collector, receiver }) => {
    expect(collector.bodies.join('')).not.toContain(FOREIGN_TRACE);
    expect(receiver.received).toHaveLength(1);
    expect(
      Object.keys(receiver.received[0]?.headers ?? {}).filter((name) => name.startsWith('trace') || name === 'baggage'),
    ).toEqual([]);
  });

  test('spans contain no personal data and no secret, whatever the answer was', async ({
    collector,
    stack,
    partner,
    spans,
    settled,
  }) => {
    const refused = [
      await stack.api.call(null, 'GET', '/v1/recipients/Marcia%20Brown?name=Marcia%20Brown', undefined, {
        'x-api-key': 'sk_wrong_key',
      }),
      await stack.api.call(partner, 'GET', '/v1/recipients/Marcia%20Brown'),
      await stack.api.call(partner, 'GET', '/Marcia%20Brown'),
      await stack.api.call(partner, 'POST', '/v1/recipients', { name: 'Marcia Brown', country: 'Jamaica' }),
    ];
    expect(refused.map(({ statusCode }) => statusCode)).toEqual([401, 404, 404, 422]);
    await spans.untilSent('POST /v1/recipients', 2);
    const sent = collector.bodies.join('\n');
    const personal = ['Marcia', 'Brown', 'Acme', '123456789', 'tok_visa', '250.00', 'dev@acme'];
    const secrets = [
      partner.apiKey,
      'sk_wrong_key',
      settled.secret,
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

  test('a health probe leaves no span', async ({ stack, spans }) => {
    await stack.api.call(null, 'GET', '/health/live');
    await stack.api.call(null, 'GET', '/v1/caribbean/corridors');
    await spans.untilSent('GET /v1/caribbean/corridors', 1);
    expect(spans.named('GET /health/live')).toEqual([]);
  });
});

describe('histories of workflows', () => {
  const HISTORIES = path.join(repositoryRoot, 'test/workflows/histories');
  const recorded = readdirSync(HISTORIES).filter((file) => file.endsWith('.json'));

  test('replay with tracing if they started without it, on every recorded path', async ({ tracing }) => {
    const bundle = await workflowBundle({ traced: true });
    expect(recorded.length).toBeGreaterThan(15);
    const histories = recorded.map((file) => ({
      workflowId: file,
      history: historyFromJSON(JSON.parse(readFileSync(path.join(HISTORIES, file), 'utf8'))),
    }));
    expect(await replayFaults({ workflowBundle: bundle, ...tracing.worker }, histories)).toEqual([]);
  });

  test('replay without tracing if they started with it', async ({ collector, stack }) => {
    const ids = collector
      .spans()
      .flatMap((span) =>
        /^(SignalWith)?StartWorkflow:/.test(span.name) ? (attributeOf(span, 'workflow.id') ?? []) : [],
      );
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
    expect(await replayFaults({ workflowBundle: await testWorkflowBundle() }, histories)).toEqual([]);
  });
});

/**
 * Counts the modules of OpenTelemetry in a process with the whole service: without an endpoint, then with one. The
 * interface package is not counted: the metrics load it.
 */
const PROGRAM = `
  import { createRequire } from 'node:module';
  for (const file of ['./api/app.ts', './worker/worker.ts', './process/dispatcher.ts']) await import(file);
  const { loadTracing } = await import('./process/tracing.ts');
  const isOpenTelemetry = (file) => /@opentelemetry.(?!api.)|interceptors-opentelemetry/.test(file);
  const loaded = () => Object.keys(createRequire(import.meta.url).cache).filter(isOpenTelemetry);
  const options = { service: 'test', log: console };
  await loadTracing({ otlp: undefined }, options);
  const without = loaded();
  await loadTracing({ otlp: { endpoint: 'http://127.0.0.1:9' } }, options);
  process.stdout.write(JSON.stringify([without, loaded().length]));
  process.exit(0);`;

test('no module of OpenTelemetry is loaded when no endpoint is configured', async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', PROGRAM],
    { cwd: repositoryRoot },
  );
  const [without, withOne]: [string[], number] = JSON.parse(stdout);
  expect(without).toEqual([]);
  expect(withOne).toBeGreaterThan(20);
});
