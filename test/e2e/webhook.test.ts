/**
 * Deliveries over real PostgreSQL, Temporal and HTTP, verified by the public libraries that subscribers use. What a
 * lane and the retries do in each case is in test/activities/webhook-lane.test.ts and webhook-subscription.test.ts.
 */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { beforeEach, describe, expect, vi } from 'vitest';
import { createGuardedHttp, type GuardedHttp } from '../../activities/providers/guarded-http.ts';
import { REDELIVERIES_MAX } from '../../domain/webhook.ts';
import { webhookSubscriptionWorkflowId } from '../../domain/workflow-id.ts';
import { withStack } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import type { Received } from '../support/http-server.ts';
import { createRecipient, type Json, jsonOf, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { ping, startReceiver, subscribe, until, untilDelivery } from '../support/webhook.ts';

type Post = GuardedHttp['post'];
/** Runs around each request of the worker. A test may replace it; it is reset before each test. */
const DIRECT = (send: () => ReturnType<Post>, _url: string): ReturnType<Post> => send();
const network = { around: DIRECT };
beforeEach(() => {
  network.around = DIRECT;
});

const http = createGuardedHttp({
  rules: { allowLocal: true },
  resolve: () => Promise.reject(new Error('these tests use no names')),
  timeoutMs: 15_000,
});
const post: Post = (...request) => network.around(() => http.post(...request), request[0]);

type DeliveryKey = { readonly webhook_id: string; readonly delivery_id: string };

/** Each test has an organization of its own, so that it gets no event of another test. */
const test = withStack({ deliveries: true, activities: { guardedHttp: { post } } })
  .extend('owner', ({ api }) => api.createCaller())
  .extend('receiver', async ({ api: _running }, { onCleanup }) => {
    const receiver = await startReceiver();
    onCleanup(() => receiver.close());
    return receiver;
  })
  .extend('world', ({ api, owner, receiver }) => ({
    subscribe: (eventTypes?: readonly string[]) => subscribe(api, owner, receiver.url, eventTypes),
    ping: (webhookId: string) => ping(api, owner, webhookId),
    redeliver: ({ webhook_id, delivery_id }: DeliveryKey) =>
      api.call(owner, 'POST', `/v1/webhooks/${webhook_id}/deliveries/${delivery_id}/redeliver`),
    /** Wakes a subscription's workflow as a failure or a replay does. A plain signal does not end a start delay. */
    wake: (webhookId: string) =>
      api.connection.pool.query(
        `INSERT INTO outbox (kind, object_id, signal, context, request_id)
         VALUES ('webhook_subscription', $1, 'retriesAdded', $2, 'req')`,
        [webhookId, { orgId: owner.orgId }],
      ),
    untilDelivery: (delivery: DeliveryKey, isExpected: (delivery: Json) => boolean) =>
      untilDelivery(api, owner, delivery, isExpected),
  }));

const headersOf = ({ headers }: Received) => ({
  'webhook-id': String(headers['webhook-id']),
  'webhook-timestamp': String(headers['webhook-timestamp']),
  'webhook-signature': String(headers['webhook-signature']),
});

describe('a failing endpoint', () => {
  test('is recorded as a failed attempt with its kind, without its answer or the query', async ({
    world,
    stack,
    receiver,
  }) => {
    receiver.answer = (response) => response.writeHead(500).end('leaked-answer');
    const webhook = await world.subscribe();
    const sent = await world.ping(webhook.webhook_id);
    const delivery = await world.untilDelivery(sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    expect(delivery).toMatchObject({
      status: 'pending',
      attempts: [{ number: 1, outcome: 'failed', response_status: 500, error: 'http_status' }],
    });
    const [{ at, duration_ms: durationMs }] = delivery.attempts;
    const stepMs = Date.parse(delivery.next_attempt_at) - Date.parse(at) - durationMs;
    expect(Math.abs(stepMs - 5_000)).toBeLessThanOrEqual(501);
    const run = stack.temporal.workflow.getHandle(webhookSubscriptionWorkflowId(webhook.webhook_id));
    // It starts a moment after the failure, by a row of the outbox.
    await vi.waitUntil(() => run.describe().catch(() => undefined), WAIT);
    const seen = JSON.stringify(delivery) + historyText(await run.fetchHistory());
    for (const secret of ['leaked-answer', 'query-secret', '127.0.0.1', webhook.secret])
      expect(seen).not.toContain(secret);
  });
});

describe('the run of a subscription', () => {
  test('begins when the second retry is due, and makes it in one round', async ({ world, api, stack, receiver }) => {
    receiver.answer = (response) => response.writeHead(500).end();
    const { webhook_id: webhookId } = await world.subscribe();
    const sent = await world.ping(webhookId);
    const { attempts } = await world.untilDelivery(sent, ({ attempt_count }) => attempt_count === 2);
    // The lane makes the first retry.
    expect(Date.parse(attempts[1].at) - Date.parse(attempts[0].at)).toBeGreaterThan(4_000);
    const run = stack.temporal.workflow.getHandle(webhookSubscriptionWorkflowId(webhookId));
    const seen = await vi.waitUntil(() => run.describe().catch(() => undefined), WAIT);
    expect([seen.status.name, seen.historyLength]).toEqual(['RUNNING', 2]);
    expect((seen.executionTime?.getTime() ?? 0) - seen.startTime.getTime()).toBeGreaterThan(240_000);
    receiver.answer = (response) => response.writeHead(200).end();
    await api.connection.pool.query('UPDATE webhook_deliveries SET next_attempt_at = now() WHERE webhook_id = $1', [
      webhookId,
    ]);
    await world.wake(webhookId);
    await run.result();
    expect(await world.untilDelivery(sent, ({ status }) => status === 'succeeded')).toMatchObject({ attempt_count: 3 });
    const { events = [] } = await run.fetchHistory();
    expect(events?.filter((event) => event.activityTaskScheduledEventAttributes)).toHaveLength(1);
  });

  test('that waits for its next retry begins at once when there is something to do before', async ({
    world,
    api,
    owner,
    stack,
  }) => {
    const { webhook_id: webhookId } = await world.subscribe();
    const { pool } = api.connection;
    await pool.query(`UPDATE webhooks SET retries_at = now() + interval '1 hour' WHERE webhook_id = $1`, [webhookId]);
    await world.wake(webhookId);
    const run = stack.temporal.workflow.getHandle(webhookSubscriptionWorkflowId(webhookId));
    const seen = await vi.waitUntil(() => run.describe().catch(() => undefined), WAIT);
    expect([seen.status.name, seen.historyLength]).toEqual(['RUNNING', 2]);
    await api.call(owner, 'POST', `/v1/webhooks/${webhookId}/replay`, { since: '2020-01-01T00:00:00Z' });
    await vi.waitUntil(async () => (await run.describe()).status.name === 'COMPLETED', WAIT);
  });
});

describe('delivery at least once', () => {
  test('a worker that dies between request and record sends the same bytes again, with the same id and number', async ({
    world,
    receiver,
  }) => {
    let deaths = 1;
    network.around = async (send, url) => {
      const answer = await send();
      // A retry of another test's delivery may come at the same time.
      if (url === receiver.url && deaths > 0) {
        deaths -= 1;
        throw new Error('killed');
      }
      return answer;
    };
    const webhook = await world.subscribe();
    const sent = await world.ping(webhook.webhook_id);
    const delivery = await world.untilDelivery(sent, ({ status }) => status === 'succeeded');
    const [first, second, ...more] = receiver.received;
    expect(more).toEqual([]);
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(delivery.attempts).toMatchObject([{ number: 1, outcome: 'succeeded', response_status: 200 }]);
  });

  test('an event that was committed while no worker ran is delivered by the next worker', async ({
    world,
    api,
    owner,
    stack,
    receiver,
  }) => {
    const { webhook_id: id } = await world.subscribe(['recipient.deactivated']);
    await stack.stopWorker();
    await api.call(owner, 'DELETE', `/v1/recipients/${await createRecipient(api, owner)}`);
    const [pending] = jsonOf(await api.call(owner, 'GET', `/v1/webhooks/${id}/deliveries`));
    expect([pending.status, receiver.received]).toEqual(['pending', []]);
    await stack.startWorker();
    await world.untilDelivery(pending, ({ status }) => status === 'succeeded');
  });

  test('a finished delivery is redelivered, each day anew: same bytes, same id, next number, and the last ten attempts are shown', async ({
    world,
    api,
    receiver,
  }) => {
    const webhook = await world.subscribe();
    const sent = await world.ping(webhook.webhook_id);
    const passDay = () =>
      api.connection.pool.query('UPDATE webhook_deliveries SET redelivered_at = NULL WHERE delivery_id = $1', [
        sent.delivery_id,
      ]);
    const numbers = Array.from({ length: 12 }, (_, index) => index + 1);
    for (const count of numbers) {
      const delivery = await world.untilDelivery(
        sent,
        ({ status, attempt_count }) => status === 'succeeded' && attempt_count === count,
      );
      const shown = numbers.slice(0, count).slice(-10);
      expect(delivery.attempts.map(({ number }: { number: number }) => number)).toEqual(shown);
      if (count % REDELIVERIES_MAX === 0) await passDay();
      const again = { delivery_id: sent.delivery_id, status: 'pending', attempt_count: count, attempts: [] };
      if (count < numbers.length) expect(jsonOf(await world.redeliver(sent))).toMatchObject(again);
    }
    const sentAs = receiver.received.map(({ headers, body }) => `${String(headers['webhook-id'])} ${body.toString()}`);
    expect(new Set(sentAs).size).toBe(1);
  });
});

describe('a subscriber gets', () => {
  test('each event of a settlement, with signatures that the public libraries verify', async ({
    world,
    api,
    owner,
    receiver,
  }) => {
    const types = ['certificate.issued', 'settlement.accepted', 'settlement.settled'];
    const webhook = await world.subscribe(types);
    const settlementId = await settle(api, owner);
    await untilStatus(api, owner, settlementId, 'settled');
    await until(
      () => receiver.received.length,
      (count) => count === types.length,
    );
    for (const received of receiver.received) {
      const raw = received.body.toString();
      for (const verifier of [new StandardWebhook(webhook.secret), new SvixWebhook(webhook.secret)]) {
        expect(verifier.verify(raw, headersOf(received))).toEqual(JSON.parse(raw));
        expect(() => verifier.verify(`${raw} `, headersOf(received))).toThrow();
      }
      const { headers } = received;
      expect(headers['content-type']).toBe('application/json');
      expect(headers['user-agent']).toContain('settlement');
      expect(['cookie', 'x-api-key'].filter((name) => name in headers)).toEqual([]);
    }
    const bodies = receiver.received.map(({ body }) => JSON.parse(body.toString()));
    expect(bodies.map(({ type }) => type).sort()).toEqual(types);
    for (const body of bodies)
      expect(Object.keys(body)).toEqual(['id', 'type', 'timestamp', 'schema_version', 'sequence', 'data']);
    const settled = bodies.find(({ type }) => type === 'settlement.settled');
    expect(settled).toMatchObject({ sequence: 6, data: { settlement_id: settlementId, status: 'settled' } });
  });
});
