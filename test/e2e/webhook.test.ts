/**
 * Deliveries over real PostgreSQL, Temporal and HTTP, verified by the public libraries that subscribers use. What a
 * lane and the retries do in each case is in test/activities/webhook-lane.test.ts and webhook-subscription.test.ts.
 */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, vi } from 'vitest';
import { laneWorkflowId, webhookSubscriptionWorkflowId } from '../../domain/workflow-id.ts';
import { withStack } from '../support/fixture.ts';
import { historyText } from '../support/history.ts';
import type { Received } from '../support/http-server.ts';
import { createRecipient, type Json, jsonOf, settle, untilStatus } from '../support/partner.ts';
import { WAIT } from '../support/patience.ts';
import { ping, startReceiver, subscribe, until, untilDelivery } from '../support/webhook.ts';

/** Each test has an organization of its own, so that it gets no event of another test. */
const test = withStack({ deliveries: true })
  .extend('owner', ({ api }) => api.createCaller())
  .extend('receiver', async ({ api: _running }, { onCleanup }) => {
    const receiver = await startReceiver();
    onCleanup(() => receiver.close());
    return receiver;
  })
  .extend('world', ({ api, owner, receiver }) => ({
    subscribe: (eventTypes?: readonly string[]) => subscribe(api, owner, receiver.url, eventTypes),
    ping: (webhookId: string) => ping(api, owner, webhookId),
    /** Wakes a subscription's workflow as a failure or a replay does. A plain signal does not end a start delay. */
    wake: (webhookId: string) =>
      api.connection.pool.query(
        `INSERT INTO outbox (kind, object_id, signal, context, request_id)
         VALUES ('webhook_subscription', $1, 'retriesAdded', $2, 'req')`,
        [webhookId, { orgId: owner.orgId }],
      ),
    untilDelivery: (delivery: Parameters<typeof untilDelivery>[2], isExpected: (delivery: Json) => boolean) =>
      untilDelivery(api, owner, delivery, isExpected),
  }));

const headersOf = ({ headers }: Received) => ({
  'webhook-id': String(headers['webhook-id']),
  'webhook-timestamp': String(headers['webhook-timestamp']),
  'webhook-signature': String(headers['webhook-signature']),
});

describe('the run of a subscription', () => {
  test('makes the second retry in one round; neither its history nor the delivery shows the answer or the query', async ({
    world,
    api,
    stack,
    receiver,
  }) => {
    receiver.answer = (response) => response.writeHead(500).end('leaked-answer');
    const { webhook_id: webhookId, secret } = await world.subscribe();
    const sent = await world.ping(webhookId);
    const failed = await world.untilDelivery(sent, ({ attempt_count }) => attempt_count === 2);
    const { attempts } = failed;
    expect([failed.status, attempts[0]]).toMatchObject([
      'pending',
      { number: 1, outcome: 'failed', response_status: 500, error: 'http_status' },
    ]);
    // The lane makes the first retry.
    expect(Date.parse(attempts[1].at) - Date.parse(attempts[0].at)).toBeGreaterThan(4_000);
    const run = stack.temporal.workflow.getHandle(webhookSubscriptionWorkflowId(webhookId));
    const seen = await vi.waitUntil(() => run.describe().catch(() => undefined), WAIT);
    expect([seen.status.name, seen.historyLength]).toEqual(['RUNNING', 2]);
    expect((seen.executionTime?.getTime() ?? 0) - seen.startTime.getTime()).toBeGreaterThan(240_000);
    receiver.answer = (response) => response.writeHead(200).end('leaked-answer');
    await api.connection.pool.query('UPDATE webhook_deliveries SET next_attempt_at = now() WHERE webhook_id = $1', [
      webhookId,
    ]);
    await world.wake(webhookId);
    await run.result();
    const delivery = await world.untilDelivery(sent, ({ status }) => status === 'succeeded');
    expect(delivery).toMatchObject({ attempt_count: 3 });
    const history = await run.fetchHistory();
    expect(history.events?.filter((event) => event.activityTaskScheduledEventAttributes)).toHaveLength(1);
    const shown = JSON.stringify([failed, delivery]) + historyText(history);
    for (const hidden of ['leaked-answer', 'query-secret', '127.0.0.1', secret]) expect(shown).not.toContain(hidden);
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

test('a lane reports to Temporal every few seconds, so that one slow call does not give it to another worker', async ({
  stack,
}) => {
  const run = stack.temporal.workflow.getHandle(laneWorkflowId(0));
  const heartbeats = new Set<number>();
  await vi.waitUntil(async () => {
    const seen = await run.describe().catch(() => undefined);
    const [lane] = seen?.raw.pendingActivities ?? [];
    const { seconds, nanos } = lane?.lastHeartbeatTime ?? {};
    if (seconds) heartbeats.add(Number(seconds) * 1_000 + (nanos ?? 0) / 1e6);
    return heartbeats.size === 3;
  }, WAIT);
  const times = [...heartbeats].sort((a, b) => a - b);
  expect(Math.min(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0)))).toBeLessThan(4_000);
});

describe('a subscriber gets', () => {
  test('an event that was committed while no worker ran from the next worker', async ({
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
