/** `/metrics` of the API with a real database: what it counts, and what it must not contain. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { fastify } from 'fastify';
import { Registry } from 'prom-client';
import { describe, expect, vi } from 'vitest';
import { metrics as requestMetrics } from '../../api/plugins/metrics.ts';
import { requestEnd } from '../../api/plugins/request-end.ts';
import { LOW_PRIORITY, turn } from '../../api/plugins/turn.ts';
import { connect } from '../../db/client.ts';
import { asTenant, WAITING } from '../../db/tenant.ts';
import type { RuntimeEnvironment } from '../../domain/runtime.ts';
import { TEMPORAL_CAUSES, type TemporalHealth, temporalFault } from '../../domain/temporal-health.ts';
import { activityMetrics } from '../../process/activity-metrics.ts';
import { processRegistry, serveMetrics } from '../../process/metrics.ts';
import { stateExposition } from '../../process/state-metrics.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createOps } from '../support/ops.ts';
import { createRecipient, settleBody } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { BY_MANUAL_CARD, openSettlement } from '../support/settlement.ts';
import { recordStatements } from '../support/statement-count.ts';
import { subscribe, writePings } from '../support/webhook.ts';

const quiet = { warn: () => undefined };
const HOUR_MS = 3_600_000;

const nowhere = connect('postgresql://127.0.0.1:1/none', {
  poolSizeMax: 1,
  name: 'test',
  onIdleError: () => undefined,
});
const UP = async () => ({ status: 'up', cause: null }) as const;
const registryOf = (totalCount: number, db = nowhere.db, temporalHealth: () => Promise<TemporalHealth> = UP) =>
  processRegistry({
    pools: new Map([
      ['main', { pool: { totalCount, idleCount: 2 }, waiting: () => 1 }],
      ['lanes', { pool: { totalCount: 12, idleCount: 0 }, waiting: () => 7 }],
    ]),
    db,
    temporalHealth,
  });
const metrics = registryOf(3);
const config = { outboxMaxRows: 10, retentionDays: { events: 90, quotes: 90 } };

const test = withApi({ deps: { metrics, lowPriority: LOW_PRIORITY } })
  /** The clock that measures requests stands still, and the test moves it: a slow machine misses no objective. */
  .extend('takeMs', ({ onTestFinished }) => {
    let nowMs = performance.now();
    const time = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    onTestFinished(() => time.mockRestore());
    return (ms: number): void => {
      nowMs += ms;
    };
  })
  .extend('scraper', FILE, async ({ api }, { onCleanup }) => {
    // The clock of the cache. `scrapeAnew` moves it past the cache's lifetime.
    let clockMs = Date.now();
    const expositions = [
      stateExposition(metrics, {
        ...api.deps,
        db: api.connection.db,
        config,
        now: () => new Date(clockMs),
        log: quiet,
      }),
    ];
    const server = await serveMetrics({ host: '127.0.0.1', port: 0, expositions });
    onCleanup(() => server.close());
    const origin = `http://127.0.0.1:${server.port}`;
    const scrape = async (): Promise<string> => await (await fetch(`${origin}/metrics`)).text();
    const scrapeAnew = async (): Promise<string> => {
      clockMs += 6_000;
      return await scrape();
    };
    const setBack = (ms: number): void => {
      clockMs -= ms;
    };
    return { port: server.port, origin, now: () => clockMs, scrape, scrapeAnew, setBack };
  });

/** The value of the sample with these labels; undefined if the page has no such sample. */
function sampleOf(page: string, sample: string): number | undefined {
  const line = page.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length + 1));
}

/** By how much the sample rises while this runs. */
async function riseOf(sample: string, scrape: () => Promise<string>, run: () => Promise<unknown>): Promise<number> {
  const read = async () => sampleOf(await scrape(), sample) ?? 0;
  const before = await read();
  await run();
  return (await read()) - before;
}

test("404 for everything but GET /metrics, and for /metrics on the API's own port", async ({ api, scraper }) => {
  for (const [method, path] of [
    ['GET', '/'],
    ['GET', '/metrics/settlements'],
    ['POST', '/metrics'],
  ] as const) {
    expect((await fetch(`${scraper.origin}${path}`, { method })).status).toBe(404);
  }
  expect((await api.app.inject('/metrics')).statusCode).toBe(404);
});

test('a port that is in use is an error', async ({ scraper }) => {
  await expect(serveMetrics({ host: '127.0.0.1', port: scraper.port, expositions: [] })).rejects.toThrow('EADDRINUSE');
});

test("a provider's event that is refused counts for its route and status", async ({ api, scraper }) => {
  const labels = 'route="/v2/webhooks/cardproc",method="POST",status="401"';
  const sample = `settlement_http_request_duration_seconds_count{${labels}}`;
  const refused = () => api.call(null, 'POST', '/v2/webhooks/cardproc', cardprocBody('stl_none'));
  expect(await riseOf(sample, scraper.scrape, refused)).toBe(1);
});

test('no id, name, path or query of a caller becomes a label', async ({ api, partner, scraper }) => {
  const recipientId = await createRecipient(api, partner, { name: 'Secretive Person' });
  await api.app.inject({
    url: `/v1/recipients/${recipientId}?email=a%40b.example`,
    headers: { 'x-api-key': partner.apiKey },
  });
  await api.app.inject('/v1/no-such-address/secret');
  await openSettlement(api, partner);
  const page = await scraper.scrapeAnew();
  for (const private_ of [recipientId, partner.orgId, partner.apiKey, 'Secretive', 'a%40b', 'no-such-address', 'stl_'])
    expect(page).not.toContain(private_);
  expect(
    sampleOf(
      page,
      'settlement_http_request_duration_seconds_count{route="/v1/recipients/:recipient_id",method="GET",status="422"}',
    ),
  ).toBe(1);
  expect(
    sampleOf(page, 'settlement_http_request_duration_seconds_count{route="none",method="GET",status="404"}'),
  ).toBeGreaterThanOrEqual(1);
});

test('a list that waits for its turn is counted', async ({ api, partner }) => {
  const { lowPriority } = api.app;
  const count = async () => sampleOf(await metrics.metrics(), 'settlement_http_low_priority_waiting');
  while (lowPriority.take(partner.orgId, () => undefined) !== 'waits');
  const list = api.call(partner, 'GET', '/v1/events');
  await expect.poll(count, WAIT).toBe(2);
  for (let n = 0; n < 2; n += 1) lowPriority.leave(partner.orgId);
  expect((await list).statusCode).toBe(200);
  expect(await count()).toBe(0);
});

describe('the counts of requests', () => {
  test('refusals by code, starting at zero', async ({ api, scraper }) => {
    const sample = (code: string) => `settlement_http_refusals_total{code="${code}"}`;
    expect(sampleOf(await scraper.scrape(), sample('launch_gates_closed'))).toBe(0);
    const refused = async () => await api.app.inject('/v1/recipients');
    expect(await riseOf(sample('credential_missing'), scraper.scrape, refused)).toBe(1);
    const unknown = async () => await api.app.inject({ url: '/unknown', headers: { accept: 'text/html' } });
    expect(await riseOf(sample('not_found'), scraper.scrape, unknown)).toBe(1);
  });

  test('open settlements by state, the age of the oldest, and overdue waits', async ({ api, partner, scraper }) => {
    const before = await scraper.scrapeAnew();
    await openSettlement(api, partner, ['awaiting_funds'], new Date(scraper.now() - HOUR_MS));
    await openSettlement(api, partner, ['awaiting_funds'], new Date(scraper.now()));
    const page = await scraper.scrapeAnew();
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

  test('outbox rows of a kind that only a later version knows, until they are gone', async ({ api, scraper }) => {
    const rows = 'settlement_outbox_rows{kind="refund"}';
    const age = 'settlement_outbox_oldest_seconds{kind="refund"}';
    await api.owner.pool.query(
      `INSERT INTO outbox (kind, object_id, context, request_id, created_at)
         VALUES ('refund', 'one', '{}', 'test', now() - interval '2 minutes')`,
    );
    const page = await scraper.scrapeAnew();
    expect([sampleOf(page, rows), Number(sampleOf(page, age)) >= 120]).toEqual([1, true]);
    await api.owner.pool.query(`DELETE FROM outbox WHERE kind = 'refund'`);
    expect(sampleOf(await scraper.scrapeAnew(), rows)).toBeUndefined();
  });

  test('the age of a settlement counts from when it entered its state, whatever arrives later', async ({
    api,
    partner,
    scraper,
  }) => {
    const reviewed = ['awaiting_funds', 'funded', 'paying_out', 'needs_review'] as const;
    const settlement = await openSettlement(api, partner, reviewed, new Date(scraper.now() - HOUR_MS));
    await sendCardproc(api, cardprocBody(settlement, { amount_received: 10_000 }));
    const page = await scraper.scrapeAnew();
    expect(sampleOf(page, 'settlement_oldest_open_seconds{state="needs_review"}')).toBeGreaterThanOrEqual(3_600);
  });

  test('settlements that ended within the last five minutes', async ({ api, partner, scraper }) => {
    await openSettlement(api, partner, ['canceled'], new Date(scraper.now()));
    await openSettlement(api, partner, ['rejected'], new Date(scraper.now() - 6 * 60_000));
    const page = await scraper.scrapeAnew();
    expect(sampleOf(page, 'settlement_finished_last_five_minutes{state="canceled"}')).toBe(1);
    expect(sampleOf(page, 'settlement_finished_last_five_minutes{state="rejected"}')).toBe(0);
    expect(sampleOf(page, 'settlement_open{state="canceled"}')).toBeUndefined();
  });

  test('whether a settlement ended lately goes by its own clock', async ({ api, partner, scraper }) => {
    const aheadMs = 7 * 24 * HOUR_MS;
    for (const minutes of [1, 10]) {
      const ended = new Date(scraper.now() + aheadMs - minutes * 60_000);
      const settlement = await openSettlement(api, partner, ['compliance_hold', 'expired'], ended);
      await api.owner.pool.query(
        `UPDATE settlements SET clock_offset_ms = $2, created_at = created_at - interval '1 day' WHERE settlement_id = $1`,
        [settlement, aheadMs],
      );
    }
    expect(sampleOf(await scraper.scrapeAnew(), 'settlement_finished_last_five_minutes{state="expired"}')).toBe(1);
  });

  test('a settlement that ended long ago has not ended lately, whatever changes since', async ({
    api,
    partner,
    scraper,
  }) => {
    const longAgo = new Date(scraper.now() - 2 * HOUR_MS);
    const settlement = await openSettlement(api, partner, ['awaiting_funds', 'failed'], longAgo);
    const isIt = 'WHERE settlement_id = $1';
    await api.owner.pool.query(`UPDATE settlements SET created_at = $2 ${isIt}`, [settlement, longAgo]);
    await sendCardproc(api, cardprocBody(settlement, { amount: 25_000 }, 'charge.dispute.created'));
    expect(sampleOf(await scraper.scrapeAnew(), 'settlement_finished_last_five_minutes{state="failed"}')).toBe(0);
  });

  test('money that is due back, and what expires within 14 days', async ({ api, partner, steps, scraper }) => {
    const settlement = await steps.waiting(BY_MANUAL_CARD);
    await sendCardproc(api, cardprocBody(settlement, { amount_received: 10_000 }));
    await api.call(partner, 'POST', `/v2/settle/${settlement}/cancel`);
    await api.owner.pool.query(
      `ALTER TABLE postings DISABLE TRIGGER USER; UPDATE postings SET at = at - interval '2 days';
       ALTER TABLE postings ENABLE TRIGGER USER`,
    );
    await sendCardproc(api, { ...cardprocBody(settlement, { amount_received: 5_000 }), id: 'evt_late' });
    const [last, spare, ended] = [await api.createCaller(), await api.createCaller(), await api.createCaller()];
    await api.owner.pool.query(`UPDATE api_keys SET expires_at = now() + interval '13 days' WHERE org_id = ANY ($1)`, [
      [last, spare, ended].map(({ orgId }) => orgId),
    ]);
    await api.owner.pool.query(`UPDATE api_keys SET status = 'revoked' WHERE org_id = $1`, [ended.orgId]);
    await api.createKey(spare.orgId, 'full');
    await api.createKey(last.orgId, 'full', { status: 'revoked' });
    await api.owner.pool.query(`
      INSERT INTO launch_gate_evidence (evidence_id, gate, environment, corridor, reference, sha256, recorded_by,
        recorded_at, expires_at)
      SELECT evidence, 'rail_admission', 'local sandbox', corridor, 'file.pdf', sha256(''), 'ana',
        now() - age * interval '1 hour', now() + days * interval '1 day'
      FROM (VALUES ('renewed', 'US-JM', 2, 3), ('later', 'US-JM', 1, 90), ('expires', 'US-HT', 1, 3),
        ('longer', 'US-BB', 2, 90), ('deciding', 'US-BB', 1, 3), ('unapproved', 'CA-JM', 1, 3),
        ('revoked', 'GB-JM', 1, 3), ('expired', 'US-TT', 48, -1), ('long ago', 'CA-TT', 480, -15)
      ) AS e (evidence, corridor, age, days);
      INSERT INTO launch_gate_approvals (evidence_id, operator, approved_at)
      SELECT evidence_id, operator, now() FROM launch_gate_evidence, unnest(ARRAY['ana', 'bo']) operator
      WHERE evidence_id <> 'unapproved';
      UPDATE launch_gate_evidence SET revoked_at = now(), revoked_by = 'ana' WHERE evidence_id = 'revoked'`);
    const page = await scraper.scrapeAnew();
    expect(sampleOf(page, 'settlement_refunds_due')).toBe(1);
    expect(sampleOf(page, 'settlement_refund_oldest_seconds')).toBeGreaterThan(2 * 86_400);
    expect(sampleOf(page, 'settlement_gate_evidence_expiring')).toBe(3);
    expect(sampleOf(page, 'settlement_keys_expiring')).toBe(1);
    const ops = createOps(api.connection.db);
    expect((await ops('list', 'settlements', '--refund-due')).printed).toEqual([expect.stringContaining(settlement)]);
  });

  test('evidence that expires is counted only for the environment of the process', async ({ newApi }) => {
    const { owner, connection } = await newApi();
    await owner.pool.query(`
      INSERT INTO launch_gate_evidence (evidence_id, gate, environment, corridor, reference, sha256, recorded_by,
        recorded_at, expires_at)
      SELECT environment || corridor, 'rail_admission', environment, corridor, 'file.pdf', sha256(''), 'ana', now(),
        now() + interval '3 days'
      FROM (VALUES ('local sandbox', 'US-JM'), ('remote sandbox', 'US-JM'), ('remote sandbox', 'US-HT')
      ) AS e (environment, corridor);
      INSERT INTO launch_gate_approvals (evidence_id, operator, approved_at)
      SELECT evidence_id, operator, now() FROM launch_gate_evidence, unnest(ARRAY['ana', 'bo']) operator`);
    const countOf = async (runtime: RuntimeEnvironment) => {
      const deps = { db: connection.db, runtime, config, now: () => new Date(), log: quiet };
      return sampleOf(await stateExposition(new Registry(), deps)(), 'settlement_gate_evidence_expiring');
    };
    expect(await countOf('local-sandbox')).toBe(1);
    expect(await countOf('remote-sandbox')).toBe(2);
    expect(await countOf('production')).toBe(0);
  });

  test('deliveries by status, and those that no lane took in time', async ({ api, partner, scraper }) => {
    const url = 'http://127.0.0.1:9999/hook';
    const [working, failing] = [await subscribe(api, partner, url), await subscribe(api, partner, url)];
    for (const [{ webhook_id: webhookId }, count] of [
      [working, 8],
      [failing, 1],
    ] as const)
      await writePings(api, count, { orgId: partner.orgId, webhookId });
    await api.owner.pool.query(`UPDATE webhooks SET failing_since = now() WHERE webhook_id = $1`, [failing.webhook_id]);
    const before = await scraper.scrapeAnew();
    // Of one that works: overdue, taken by a lane that is gone, with its retry, due now, ended today, ended before; after its eight
    // attempts, and long after them.
    const late = `next_attempt_at = now() - interval '10 minutes'`;
    const exhausted = `status = 'exhausted', next_attempt_at = NULL, lane_key = NULL`;
    const changes = [
      late,
      `${late}, claimed_by = 1, claimed_at = now() - interval '10 minutes'`,
      `${late}, lane_key = NULL`,
      'next_attempt_at = now()',
      `status = 'skipped', next_attempt_at = NULL, lane_key = NULL`,
      `status = 'skipped', next_attempt_at = NULL, lane_key = NULL, created_at = now() - interval '25 hours'`,
      `${exhausted}, created_at = now() - interval '28 hours'`,
      `${exhausted}, created_at = now() - interval '80 hours'`,
    ];
    for (const [place, change] of changes.entries())
      await api.owner.pool.query(
        `UPDATE webhook_deliveries SET ${change} WHERE delivery_id = (
           SELECT delivery_id FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY delivery_id OFFSET $2 LIMIT 1)`,
        [working.webhook_id, place],
      );
    await api.owner.pool.query(`UPDATE webhook_deliveries SET ${late} WHERE webhook_id = $1`, [failing.webhook_id]);
    const page = await scraper.scrapeAnew();
    const added = (sample: string): number => (sampleOf(page, sample) ?? 0) - (sampleOf(before, sample) ?? 0);
    expect(added('settlement_deliveries{status="pending"}')).toBe(-4);
    expect(added('settlement_deliveries{status="exhausted"}')).toBe(1);
    expect(added('settlement_deliveries{status="skipped"}')).toBe(1);
    // Nobody counts the millions that succeed.
    expect(sampleOf(page, 'settlement_deliveries{status="succeeded"}')).toBeUndefined();
    expect(added('settlement_deliveries_overdue')).toBe(1);
    // One that is slow has requests under way, and the others wait for it.
    await api.owner.pool.query(`UPDATE webhook_deliveries SET claimed_at = now() WHERE claimed_by = 1`);
    expect(sampleOf(await scraper.scrapeAnew(), 'settlement_deliveries_overdue')).toBe(0);
  });

  test('acceptances and reads count as good or bad for the objectives', async ({ newApi, takeMs: _ }) => {
    const registry = new Registry();
    const api = await newApi({ deps: { metrics: registry } });
    const partner = await api.createCaller();
    const read = () => registry.metrics();
    const sample = (slo: string, result: string) => `settlement_slo_total{slo="${slo}",result="${result}"}`;
    expect(sampleOf(await read(), sample('accept', 'bad'))).toBe(0);
    expect(await riseOf(sample('accept', 'good'), read, () => openSettlement(api, partner))).toBe(1);
    expect(await riseOf(sample('read', 'good'), read, () => api.call(partner, 'GET', '/v1/me'))).toBe(1);
  });

  test('an acceptance that is refused because the service is full is bad for the objectives', async ({ newApi }) => {
    const registry = new Registry();
    const full = await newApi({ config: { outboxMaxRows: 0 }, deps: { metrics: registry } });
    await full.owner.pool.query(
      `INSERT INTO outbox (kind, object_id, context, request_id) VALUES ('otp', 'one', '{}', 'test')`,
    );
    const headers = { 'idempotency-key': randomUUID() };
    const refused = await full.call(await full.createCaller(), 'POST', '/v2/settle', settleBody('unknown'), headers);
    expect(refused.statusCode).toBe(503);
    expect(sampleOf(await registry.metrics(), 'settlement_slo_total{slo="accept",result="bad"}')).toBe(1);
  });

  test('a step that fails or takes more than 5 s, and a delivery more than 10 s late, are bad for the objectives', async () => {
    const registry = new Registry();
    const { activityEnded, deliveryTaken } = activityMetrics(registry);
    activityEnded('step', { isStep: true, isFailed: false, seconds: 5 });
    activityEnded('step', { isStep: true, isFailed: false, seconds: 5.1 });
    activityEnded('step', { isStep: true, isFailed: true, seconds: 1 });
    activityEnded('other', { isStep: false, isFailed: true, seconds: 60 });
    for (const lateSeconds of [0, 10, 10.1]) deliveryTaken(lateSeconds, false);
    deliveryTaken(60, true);
    const page = await registry.metrics();
    const counted = (slo: string) =>
      ['good', 'bad'].map((result) => sampleOf(page, `settlement_slo_total{slo="${slo}",result="${result}"}`));
    expect([counted('step'), counted('delivery')]).toEqual([
      [1, 2],
      [2, 1],
    ]);
    const failures = ['step', 'other'].map((name) => `settlement_activity_failures_total{activity="${name}"}`);
    expect(failures.map((sample) => sampleOf(page, sample))).toEqual([1, 1]);
  });

  test('an acceptance that took too long is bad for the objectives, also if its caller went before its answer', async ({
    api,
    partner,
    port,
    takeMs,
  }) => {
    const ended = 'settlement_http_request_duration_seconds_count{route="/v2/settle",method="POST",status="499"}';
    const recipientId = await createRecipient(api, partner);
    const { pool, waiting } = api.connection;
    const leave = async (afterMs: number): Promise<string> => {
      const taken = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
      const before = sampleOf(await metrics.metrics(), ended) ?? 0;
      const caller = new AbortController();
      const asked = fetch(`http://127.0.0.1:${port}/v2/settle`, {
        method: 'POST',
        headers: { 'x-api-key': partner.apiKey, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
        body: JSON.stringify(settleBody(recipientId)),
        signal: caller.signal,
      }).catch(() => undefined);
      await vi.waitUntil(() => waiting() === 1, WAIT);
      takeMs(afterMs);
      caller.abort();
      await asked;
      await vi.waitUntil(async () => (sampleOf(await metrics.metrics(), ended) ?? 0) === before + 1, WAIT);
      for (const client of taken) client.release();
      return await metrics.metrics();
    };
    const bad = (page: string) => sampleOf(page, 'settlement_slo_total{slo="accept",result="bad"}') ?? Number.NaN;
    const early = bad(await leave(100));
    expect(bad(await leave(1_100))).toBe(early + 1);
  });

  describe("the objectives'", () => {
    const readsIn = (page: string) =>
      ['good', 'bad'].map((result) => sampleOf(page, `settlement_slo_total{slo="read",result="${result}"}`) ?? 0);

    test('none of what was refused before it was admitted: a wrong credential, an unknown address, too many requests', async ({
      api,
      scraper,
    }) => {
      const { orgId, apiKey } = await api.createCaller();
      /** In a window that does not end during the test. */
      const spend = (units: number) =>
        api.owner.pool.query(
          `UPDATE rate_limits SET used = used + $1, window_start = date_trunc('minute', now()) + interval '1 minute'
            WHERE caller = $2`,
          [units, `org:${orgId}`],
        );
      const get = async (url: string, headers: Record<string, string> = {}) =>
        (await api.app.inject({ url, headers })).statusCode;
      expect(await get('/v1/me', { 'x-api-key': apiKey })).toBe(200);
      const before = readsIn(await scraper.scrape());
      await spend(api.deps.config.rateLimitPerMinute);
      expect(await get('/v1/me', { 'x-api-key': apiKey })).toBe(429);
      await spend(1_000);
      expect(await get('/v1/me', { 'x-api-key': apiKey })).toBe(429);
      expect(await get('/v1/me')).toBe(401);
      expect(await get('/v1/me', { 'x-api-key': 'unknown' })).toBe(401);
      expect(await get('/v1/no-such-address')).toBe(404);
      expect(await get('/v2/capabilities')).toBe(200);
      expect(readsIn(await scraper.scrape())).toEqual(before);
    });

    test('no refusal because too many requests of the same organization wait', async ({ api, scraper }) => {
      const { orgId, apiKey } = await api.createCaller();
      const get = async () => (await api.app.inject({ url: '/v1/me', headers: { 'x-api-key': apiKey } })).statusCode;
      expect(await get()).toBe(200);
      const before = readsIn(await scraper.scrape());
      const { pool, waiting } = api.connection;
      const [first, ...taken] = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
      // Its key is looked up first. Then somebody else has the connection, and its organization's queue is full.
      const asked = get();
      await vi.waitUntil(() => waiting() === 1, WAIT);
      const other = asTenant('another organization', () => pool.query('SELECT pg_sleep(0.5)'));
      const burst = asTenant(orgId, () =>
        Array.from({ length: WAITING.waitingMaxOfTenant }, () => pool.query('SELECT 1')),
      );
      first?.release();
      const refused = await asked;
      for (const client of taken) client.release();
      await Promise.all([other, ...burst]);
      expect(refused).toBe(503);
      expect(readsIn(await scraper.scrape())).toEqual(before);
    });

    test('an acceptance without the time that its caller takes to send the body', async ({
      api,
      partner,
      port,
      takeMs,
    }) => {
      const slo = async (result: string) =>
        sampleOf(await metrics.metrics(), `settlement_slo_total{slo="accept",result="${result}"}`) ?? 0;
      const [good, bad] = [await slo('good'), await slo('bad')];
      const body = JSON.stringify(settleBody(await createRecipient(api, partner)));
      const sent = request({
        ...{ port, host: '127.0.0.1', method: 'POST', path: '/v2/settle', agent: false },
        headers: {
          ...{ 'x-api-key': partner.apiKey, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
          'content-length': Buffer.byteLength(body),
        },
      });
      const arrived: Promise<IncomingMessage[]> = once(api.app.server, 'request');
      sent.write(body.slice(0, 10));
      const [received] = await arrived;
      // Its body is asked for.
      await vi.waitUntil(() => (received?.listenerCount('data') ?? 0) > 0, WAIT);
      takeMs(1_500);
      sent.end(body.slice(10));
      const [answer] = await once(sent, 'response');
      answer.resume();
      expect(answer.statusCode).toBe(202);
      await expect.poll(() => slo('good')).toBe(good + 1);
      expect(await slo('bad')).toBe(bad);
    });

    test('no read as slow that waits because its caller prefers it, also if its caller goes', async ({
      api,
      partner,
      port,
      takeMs,
    }) => {
      const url = `/v2/settle/${await openSettlement(api, partner, ['awaiting_funds'])}`;
      const ended =
        'settlement_http_request_duration_seconds_count{route="/v2/settle/:settlement_id",method="GET",status="499"}';
      const [good = 0, bad] = readsIn(await metrics.metrics());
      const subscribe = vi.spyOn(api.deps.changes, 'subscribe');
      const held = api.call(partner, 'GET', url, undefined, { prefer: 'wait=1' });
      await vi.waitUntil(() => subscribe.mock.calls.length === 1, WAIT);
      takeMs(1_000);
      expect((await held).statusCode).toBe(200);
      const headers = { 'x-api-key': partner.apiKey, prefer: 'wait=20' };
      const caller = new AbortController();
      const asked = fetch(`http://127.0.0.1:${port}${url}`, { headers, signal: caller.signal }).catch(() => undefined);
      await vi.waitUntil(() => subscribe.mock.calls.length === 2, WAIT);
      subscribe.mockRestore();
      takeMs(800);
      caller.abort();
      await asked;
      await vi.waitUntil(async () => (sampleOf(await metrics.metrics(), ended) ?? 0) === 1, WAIT);
      expect(readsIn(await metrics.metrics())).toEqual([good + 1, bad]);
    });

    test('no CSV as slow, which takes as long as it has lines', async ({ api, partner, takeMs }) => {
      const [good = 0, bad] = readsIn(await metrics.metrics());
      const readList = vi.spyOn(api.deps, 'readList').mockImplementation(async (run) => {
        takeMs(800);
        return await run(api.connection.db);
      });
      const read = (accept: string) => api.call(partner, 'GET', '/v2/settlements', undefined, { accept });
      expect((await read('text/csv')).statusCode).toBe(200);
      expect(readsIn(await metrics.metrics())).toEqual([good + 1, bad]);
      await read('application/json');
      readList.mockRestore();
      expect(readsIn(await metrics.metrics())).toEqual([good + 1, (bad ?? 0) + 1]);
    });

    test('a read without the time that its caller takes to read the answer', async ({ takeMs, onTestFinished }) => {
      const registry = new Registry();
      const app = fastify({ forceCloseConnections: true });
      onTestFinished(() => app.close());
      await app.register(requestEnd);
      await app.register(turn, LOW_PRIORITY);
      await app.register(requestMetrics, { deps: { metrics: registry } });
      app.decorateRequest('principal', null);
      app.addHook('onRequest', async (asked) => {
        asked.principal = { orgId: 'org', keyId: 'key', scope: 'read', allowance: { tier: 'standard', limits: {} } };
      });
      // More than the system keeps for one connection.
      const access = { auth: 'api_key', scope: 'read' } as const;
      app.get('/big', { config: { access } }, async () => Buffer.alloc(16 * 1024 * 1024));
      const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
      const client = connectSocket(Number(port), '127.0.0.1');
      client.write('GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      client.pause();
      await once(client, 'readable');
      takeMs(1_000);
      client.resume();
      await once(client, 'close');
      expect(readsIn(await registry.metrics())).toEqual([1, 0]);
    });
  });

  test('how far the clock of the process is from that of PostgreSQL, and its memory', async ({ api }) => {
    const page = await registryOf(1, api.connection.db).metrics();
    expect(Math.abs(sampleOf(page, 'settlement_clock_offset_seconds') ?? Number.NaN)).toBeLessThan(1);
    expect(sampleOf(page, 'settlement_process_memory_ratio')).toBeGreaterThan(0);
    expect(await registryOf(1).metrics()).not.toContain('\nsettlement_clock_offset_seconds ');
  });

  test('whether the process can use Temporal, whatever the cause that it cannot', async () => {
    const upWith = async (health: TemporalHealth) =>
      sampleOf(await registryOf(1, nowhere.db, async () => health).metrics(), 'settlement_temporal_up');
    expect(await upWith({ status: 'up', cause: null })).toBe(1);
    for (const cause of TEMPORAL_CAUSES) expect(await upWith(temporalFault(cause, '')), cause).toBe(0);
  });

  test('the connections of each pool and the delay of the event loop', async ({ scraper }) => {
    const page = await scraper.scrape();
    const waiting = (pool: string) =>
      sampleOf(page, `settlement_database_pool_connections{pool="${pool}",state="waiting"}`);
    expect(['main', 'lanes', 'lists'].map(waiting)).toEqual([1, 7, undefined]);
    expect(sampleOf(page, 'nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
  });
});

describe('the database', () => {
  test('is read again when the clock was set back', async ({ api, scraper }) => {
    await scraper.scrapeAnew();
    const recorded = recordStatements(api.connection.pool);
    scraper.setBack(HOUR_MS);
    await scraper.scrape();
    expect(recorded().length).toBeGreaterThan(0);
  });

  test('is read once for all scrapes within five seconds', async ({ api, partner, scraper }) => {
    const before = await scraper.scrapeAnew();
    await openSettlement(api, partner);
    const sample = 'settlement_open{state="accepted"}';
    expect(sampleOf(await scraper.scrape(), sample)).toBe(sampleOf(before, sample));
    expect(sampleOf(await scraper.scrapeAnew(), sample)).toBe((sampleOf(before, sample) ?? 0) + 1);
  });

  test('is down: settlement_database_up is 0, and no old value is shown', async () => {
    const page = await stateExposition(registryOf(0), {
      db: nowhere.db,
      runtime: 'local-sandbox',
      config,
      now: () => new Date(),
      log: quiet,
    })();
    expect(sampleOf(page, 'settlement_database_up')).toBe(0);
    expect(page).not.toMatch(/^settlement_(open|outbox_rows|overdue|deliveries)\{/m);
    expect(sampleOf(page, 'settlement_deliveries_overdue')).toBeUndefined();
  });
});
