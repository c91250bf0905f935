/** `/metrics` of the API over a real database: what it counts, and what it must never tell. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../../db/client.ts';
import { type MetricsServer, processRegistry, serveMetrics } from '../../process/metrics.ts';
import { stateExposition } from '../../process/state-metrics.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { createRecipient } from '../support/partner.ts';
import { openSettlement } from '../support/settlement.ts';

const quiet = { warn: () => undefined };
const HOUR_MS = 3_600_000;

let api: TestApi;
let caller: Caller;
let server: MetricsServer;
/** What the cache goes by; moved past it before each scrape. */
let clockMs = Date.now();
const metrics = processRegistry({ totalCount: 3, idleCount: 2, waitingCount: 1 });

beforeAll(async () => {
  api = await createTestApi({ deps: { metrics } });
  caller = await api.createCaller();
  const expositions = [stateExposition(metrics, { db: api.connection.db, now: () => new Date(clockMs), log: quiet })];
  server = await serveMetrics({ host: '127.0.0.1', port: 0, expositions });
});
afterAll(async () => {
  await server.close();
  await api.close();
});

const scrape = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
async function scrapeAnew(): Promise<string> {
  clockMs += 6_000;
  return await scrape();
}
/** The value of a sample as it is written, labels and all; undefined where there is none. */
function sampleOf(page: string, sample: string): number | undefined {
  const line = page.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length + 1));
}

test('404 for everything but GET /metrics, and the API itself offers no metrics', async () => {
  for (const [method, path] of [
    ['GET', '/'],
    ['GET', '/metrics/settlements'],
    ['POST', '/metrics'],
  ] as const) {
    expect((await fetch(`http://127.0.0.1:${server.port}${path}`, { method })).status).toBe(404);
  }
  expect((await api.app.inject('/metrics')).statusCode).toBe(404);
});

test('a port that is taken is refused, not shared', async () => {
  await expect(serveMetrics({ host: '127.0.0.1', port: server.port, expositions: [] })).rejects.toThrow('EADDRINUSE');
});

test('no id, name, address or query that a caller wrote becomes a label', async () => {
  const recipientId = await createRecipient({ api }, caller, { name: 'Secretive Person' });
  await api.app.inject({
    url: `/v1/recipients/${recipientId}?email=a%40b.example`,
    headers: { 'x-api-key': caller.apiKey },
  });
  await api.app.inject('/v1/no-such-address/secret');
  await openSettlement(api, caller);
  const page = await scrapeAnew();
  for (const private_ of [recipientId, caller.orgId, caller.apiKey, 'Secretive', 'a%40b', 'no-such-address', 'stl_'])
    expect(page).not.toContain(private_);
  expect(
    sampleOf(
      page,
      'settlement_http_request_duration_seconds_count{route="/v1/recipients/:recipient_id",method="GET",status="200"}',
    ),
  ).toBe(1);
  expect(
    sampleOf(page, 'settlement_http_request_duration_seconds_count{route="none",method="GET",status="404"}'),
  ).toBeGreaterThanOrEqual(1);
});

describe('counts', () => {
  test('refusals by code, from zero on', async () => {
    const sample = 'settlement_http_refusals_total{code="credential_missing"}';
    const before = await scrape();
    expect(sampleOf(before, 'settlement_http_refusals_total{code="launch_gates_closed"}')).toBe(0);
    await api.app.inject('/v1/recipients');
    expect(sampleOf(await scrape(), sample)).toBe((sampleOf(before, sample) ?? 0) + 1);
  });

  test('open settlements by state, how long the oldest has stood there, and which waits are over', async () => {
    const before = await scrapeAnew();
    await openSettlement(api, caller, ['awaiting_funds'], new Date(clockMs - HOUR_MS));
    await openSettlement(api, caller, ['awaiting_funds'], new Date(clockMs));
    const page = await scrapeAnew();
    expect(sampleOf(page, 'settlement_open{state="awaiting_funds"}')).toBe(2);
    expect(sampleOf(page, 'settlement_open{state="needs_review"}')).toBe(0);
    expect(sampleOf(page, 'settlement_oldest_open_seconds{state="awaiting_funds"}')).toBeCloseTo(
      HOUR_MS / 1_000 + 6,
      0,
    );
    expect(sampleOf(page, 'settlement_overdue{state="awaiting_funds"}')).toBe(1);
    const outbox = 'settlement_outbox_rows{kind="settlement"}';
    expect(sampleOf(page, outbox)).toBe((sampleOf(before, outbox) ?? 0) + 2);
    expect(sampleOf(page, 'settlement_outbox_oldest_seconds{kind="settlement"}')).toBeGreaterThan(0);
  });

  test('settlements that came to an end within the hour, and no older ones', async () => {
    await openSettlement(api, caller, ['canceled'], new Date(clockMs));
    await openSettlement(api, caller, ['rejected'], new Date(clockMs - 2 * HOUR_MS));
    const page = await scrapeAnew();
    expect(sampleOf(page, 'settlement_finished_last_hour{state="canceled"}')).toBe(1);
    expect(sampleOf(page, 'settlement_finished_last_hour{state="rejected"}')).toBe(0);
    expect(sampleOf(page, 'settlement_open{state="canceled"}')).toBeUndefined();
  });

  test('the connections of the pool and the delay of the event loop', async () => {
    const page = await scrape();
    expect(sampleOf(page, 'settlement_database_pool_connections{state="waiting"}')).toBe(1);
    expect(sampleOf(page, 'nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
  });
});

describe('the database is asked', () => {
  test('once for scrapes that come within five seconds or at the same moment, and not again before', async () => {
    const before = await scrapeAnew();
    await openSettlement(api, caller);
    const sample = 'settlement_open{state="accepted"}';
    expect(sampleOf(await scrape(), sample)).toBe(sampleOf(before, sample));
    expect(sampleOf(await scrapeAnew(), sample)).toBe((sampleOf(before, sample) ?? 0) + 1);
  });

  test('in vain: settlement_database_up is 0, and no old number is told as a true one', async () => {
    const registry = processRegistry({ totalCount: 0, idleCount: 0, waitingCount: 0 });
    const gone = connect('postgresql://127.0.0.1:1/none', {
      poolSizeMax: 1,
      name: 'test',
      onIdleError: () => undefined,
    });
    const page = await stateExposition(registry, { db: gone.db, now: () => new Date(), log: quiet })();
    await gone.close();
    expect(sampleOf(page, 'settlement_database_up')).toBe(0);
    expect(page).not.toMatch(/^settlement_(open|outbox_rows|overdue|deliveries)\{/m);
    expect(sampleOf(page, 'settlement_deliveries_overdue')).toBeUndefined();
  });
});
