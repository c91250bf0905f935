/** Deliveries over real PostgreSQL, Temporal and HTTP, verified by the public libraries that subscribers use. */
import type { WorkflowHandle } from '@temporalio/client';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { beforeEach, describe, expect, vi } from 'vitest';
import { createGuardedHttp, type GuardedHttp } from '../../activities/providers/guarded-http.ts';
import { REDELIVERIES_MAX } from '../../domain/webhook.ts';
import { webhookSubscriptionWorkflowId } from '../../domain/workflow-id.ts';
import { withStack } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { stretched, WAIT } from '../support/patience.ts';
import type { TestStack } from '../support/stack.ts';
import {
  ping,
  type Received,
  type Receiver,
  readDelivery,
  startReceiver,
  subscribe,
  until,
  untilDelivery,
} from '../support/webhook.ts';

const SHORT_MS = 1_000;
const LONG_MS = 15_000;

type Post = GuardedHttp['post'];
/** Runs around each request of the worker. A test may replace it. */
const DIRECT = (send: () => ReturnType<Post>, _url: string): ReturnType<Post> => send();
/** How the worker's requests are sent; it is reset before each test. */
const network = { around: DIRECT, timeoutMs: LONG_MS };
beforeEach(() => {
  network.around = DIRECT;
  network.timeoutMs = LONG_MS;
});

const post: Post = (...request) => {
  const http = createGuardedHttp({
    rules: { allowLocal: true },
    resolve: () => Promise.reject(new Error('these tests use no names')),
    timeoutMs: network.timeoutMs,
  });
  return network.around(() => http.post(...request), request[0]);
};

/** The workflow with the retries of a subscription. It starts a moment after the failure, by a row of the outbox. */
async function runOf({ temporal }: Pick<TestStack, 'temporal'>, webhookId: string): Promise<WorkflowHandle> {
  const run = temporal.workflow.getHandle(webhookSubscriptionWorkflowId(webhookId));
  await vi.waitUntil(() => run.describe().catch(() => undefined), WAIT);
  return run;
}

type DeliveryKey = { readonly webhook_id: string; readonly delivery_id: string };

/** Each test has an organization of its own, so that it gets no event of another test. */
const test = withStack({ deliveries: true, activities: { guardedHttp: { post } } })
  .extend('world', async ({ api, stack }, { onCleanup }) => {
    const owner = await api.createCaller();
    const receivers: Receiver[] = [];
    onCleanup(async () => void (await Promise.all(receivers.map((receiver) => receiver.close()))));
    const call = (method: Parameters<typeof api.call>[1], url: string, body?: unknown, headers = {}) =>
      api.call(owner, method, url, body, headers);
    return {
      call,
      /** A subscriber that is closed after the test. */
      startReceiver: async (port?: number): Promise<Receiver> => {
        const receiver = await startReceiver(port);
        receivers.push(receiver);
        return receiver;
      },
      subscribe: (url: string, eventTypes?: readonly string[]) => subscribe(api, owner, url, eventTypes),
      ping: (webhookId: string) => ping(api, owner, webhookId),
      change: (webhookId: string, body: unknown) => call('PATCH', `/v1/webhooks/${webhookId}`, body).then(jsonOf),
      redeliver: ({ webhook_id, delivery_id }: DeliveryKey) =>
        call('POST', `/v1/webhooks/${webhook_id}/deliveries/${delivery_id}/redeliver`),
      readDelivery: (delivery: DeliveryKey) => readDelivery(api, owner, delivery),
      untilDelivery: (delivery: DeliveryKey, isExpected: (delivery: Json) => boolean) =>
        untilDelivery(api, owner, delivery, isExpected),
      /** The webhook's delivery, once there is one. */
      onlyDelivery: async (webhookId: string): Promise<Json> => {
        const list = () => call('GET', `/v1/webhooks/${webhookId}/deliveries`).then(jsonOf);
        const [delivery] = await until(list, (deliveries) => deliveries.length === 1);
        return delivery;
      },
      createRecipient: () => createRecipient(stack.api, owner),
      deactivateRecipient: async (): Promise<void> => {
        const recipientId = await createRecipient(stack.api, owner);
        await call('DELETE', `/v1/recipients/${recipientId}`);
      },
      untilStatus: (settlementId: string, status: string) => untilStatus(stack.api, owner, settlementId, status),
    };
  })
  .extend('receiver', ({ world }) => world.startReceiver());

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
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    const delivery = await world.untilDelivery(sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    expect(delivery).toMatchObject({
      status: 'pending',
      attempts: [{ number: 1, outcome: 'failed', response_status: 500, error: 'http_status' }],
    });
    const stepMs =
      Date.parse(delivery.next_attempt_at) - Date.parse(delivery.attempts[0].at) - delivery.attempts[0].duration_ms;
    expect(stepMs).toBeGreaterThanOrEqual(4_500);
    expect(stepMs).toBeLessThanOrEqual(5_500);
    const history = await (await runOf(stack, webhook.webhook_id)).fetchHistory();
    const seen =
      JSON.stringify(delivery) +
      Buffer.from(
        JSON.stringify(history, (_, value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value)),
      ).toString();
    for (const secret of ['leaked-answer', 'query-secret', '127.0.0.1', webhook.secret])
      expect(seen).not.toContain(secret);
  });

  test('fails if it redirects, and the redirect is not followed', async ({ world, receiver }) => {
    const canary = await world.startReceiver();
    receiver.answer = (response) => response.writeHead(307, { location: canary.url }).end();
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    const delivery = await world.untilDelivery(sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    expect(delivery.attempts[0]).toMatchObject({ response_status: 307, error: 'redirect' });
    expect(canary.received).toEqual([]);
  });

  test('410 disables the subscription: later events are skipped, and a redelivery is sent', async ({
    world,
    receiver,
  }) => {
    receiver.answer = (response) => response.writeHead(410).end();
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    await world.untilDelivery(sent, ({ status }) => status === 'skipped');
    expect(jsonOf(await world.call('GET', `/v1/webhooks/${webhook.webhook_id}`))).toMatchObject({
      status: 'disabled',
      disabled_reason: 'gone',
    });
    await world.deactivateRecipient();
    const [missed] = jsonOf(await world.call('GET', `/v1/webhooks/${webhook.webhook_id}/deliveries`));
    expect(missed).toMatchObject({
      event_type: 'recipient.deactivated',
      status: 'skipped',
      attempts: [],
      next_attempt_at: null,
    });
    receiver.answer = (response) => response.end();
    expect((await world.redeliver(missed)).statusCode).toBe(202);
    await world.untilDelivery(missed, ({ status }) => status === 'succeeded');
    expect(receiver.received.at(-1)?.headers['webhook-id']).toBe(missed.event_id);
  });

  test('an answer that never ends times out', async ({ world, receiver }) => {
    network.timeoutMs = SHORT_MS;
    receiver.answer = (response) => {
      response.write('drip');
    };
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    const delivery = await world.untilDelivery(sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    expect(delivery.attempts[0]).toMatchObject({ error: 'timeout', response_status: null });
    expect(delivery.attempts[0].duration_ms).toBeGreaterThanOrEqual(SHORT_MS - 50);
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
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    const delivery = await world.untilDelivery(sent, ({ status }) => status === 'succeeded');
    expect(receiver.received).toHaveLength(2);
    const [first, second] = receiver.received;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(delivery.attempts).toMatchObject([{ number: 1, outcome: 'succeeded', response_status: 200 }]);
  });

  test('a receiver that was down gets the event when it is up again and a redelivery is requested', async ({
    world,
  }) => {
    const first = await world.startReceiver();
    const webhook = await world.subscribe(first.url);
    await first.close();
    const sent = await world.ping(webhook.webhook_id);
    await world.untilDelivery(sent, ({ attempts }) => attempts[0]?.error === 'connect');
    const second = await world.startReceiver(first.port);
    await world.redeliver(sent);
    const delivery = await world.untilDelivery(sent, ({ status }) => status === 'succeeded');
    expect(delivery.attempts).toMatchObject([
      { number: 1, outcome: 'failed' },
      { number: 2, outcome: 'succeeded' },
    ]);
    expect(second.received).toHaveLength(1);
  });

  test('an event that was committed while no worker ran is delivered by the next worker', async ({
    world,
    stack,
    receiver,
  }) => {
    const webhook = await world.subscribe(receiver.url, ['recipient.deactivated']);
    await stack.stopWorker();
    await world.deactivateRecipient();
    const delivery = await world.onlyDelivery(webhook.webhook_id);
    expect(delivery.status).toBe('pending');
    await stack.startWorker();
    await world.untilDelivery(delivery, ({ status }) => status === 'succeeded');
  });

  test('a finished delivery is redelivered, each day anew: same bytes, same id, next number, and the last ten attempts are shown', async ({
    world,
    stack,
    receiver,
  }) => {
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    const { pool } = stack.api.connection;
    const passDay = () =>
      pool.query('UPDATE webhook_deliveries SET redelivered_at = NULL WHERE delivery_id = $1', [sent.delivery_id]);
    const numbers = Array.from({ length: 12 }, (_, index) => index + 1);
    for (const count of numbers) {
      const delivery = await world.untilDelivery(
        sent,
        (read) => read.status === 'succeeded' && read.attempt_count === count,
      );
      // Only the last ten are shown.
      const shown = numbers.slice(0, count).slice(-10);
      expect(delivery.attempts.map(({ number }: { number: number }) => number)).toEqual(shown);
      if (count % REDELIVERIES_MAX === 0) await passDay();
      if (count < numbers.length)
        expect(jsonOf(await world.redeliver(sent))).toMatchObject({
          ...{ delivery_id: sent.delivery_id, status: 'pending' },
          ...{ attempt_count: count, attempts: [] },
        });
    }
    expect(
      new Set(receiver.received.map(({ headers, body }) => `${String(headers['webhook-id'])} ${body.toString()}`)).size,
    ).toBe(1);
  });
});

describe('a subscriber gets', () => {
  test('each event of a settlement, with signatures that the public libraries verify', async ({ world, receiver }) => {
    const webhook = await world.subscribe(receiver.url, [
      'settlement.accepted',
      'settlement.settled',
      'certificate.issued',
    ]);
    const recipientId = await world.createRecipient();
    const { settlement_id } = jsonOf(
      await world.call('POST', '/v2/settle', settleBody(recipientId), {
        'idempotency-key': crypto.randomUUID(),
      }),
    );
    await world.untilStatus(settlement_id, 'settled');
    await until(
      () => receiver.received.length,
      (count) => count === 3,
    );
    for (const received of receiver.received) {
      const raw = received.body.toString();
      for (const verifier of [new StandardWebhook(webhook.secret), new SvixWebhook(webhook.secret)]) {
        expect(verifier.verify(raw, headersOf(received))).toEqual(JSON.parse(raw));
        expect(() => verifier.verify(`${raw} `, headersOf(received))).toThrow();
      }
      expect(received.headers).toMatchObject({
        'content-type': 'application/json',
        'user-agent': expect.stringContaining('settlement'),
      });
      expect(Object.keys(received.headers)).not.toEqual(expect.arrayContaining(['cookie']));
      expect(received.headers).not.toHaveProperty('x-api-key');
    }
    const bodies = receiver.received.map(({ body }) => JSON.parse(body.toString()));
    expect(new Set(bodies.map(({ type }) => type))).toEqual(
      new Set(['certificate.issued', 'settlement.accepted', 'settlement.settled']),
    );
    for (const body of bodies)
      expect(Object.keys(body)).toEqual(['id', 'type', 'timestamp', 'schema_version', 'sequence', 'data']);
    const settled = bodies.find(({ type }) => type === 'settlement.settled');
    expect(settled).toMatchObject({ sequence: 6, data: { settlement_id, status: 'settled' } });
  });

  test('signatures of both secrets after a rotation, the new one first', async ({ world, receiver }) => {
    const webhook = await world.subscribe(receiver.url);
    const rotated = jsonOf(await world.call('POST', `/v1/webhooks/${webhook.webhook_id}/rotate-secret`));
    await world.ping(webhook.webhook_id);
    await until(
      () => receiver.received.length,
      (count) => count === 1,
    );
    const [received] = receiver.received;
    if (!received) throw new Error('nothing came');
    const [current = '', previous = ''] = headersOf(received)['webhook-signature'].split(' ');
    for (const [secret, signature] of [
      [rotated.secret, current],
      [webhook.secret, previous],
    ] as const) {
      expect(new StandardWebhook(secret).verify(received.body.toString(), headersOf(received))).toMatchObject({
        type: 'webhook.ping',
      });
      expect(
        new StandardWebhook(secret).verify(received.body.toString(), {
          ...headersOf(received),
          'webhook-signature': signature,
        }),
      ).toMatchObject({
        type: 'webhook.ping',
      });
    }
  });
});

describe('a subscription that changes', () => {
  test('disabled: pending deliveries are skipped at once and the workflow ends; enabled again, a redelivery is sent', async ({
    world,
    stack,
    receiver,
  }) => {
    receiver.answer = (response) => response.writeHead(503).end();
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    await world.untilDelivery(sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    await world.change(webhook.webhook_id, { status: 'disabled' });
    expect(await world.readDelivery(sent)).toMatchObject({ status: 'skipped', next_attempt_at: null });
    await (await runOf(stack, webhook.webhook_id)).result();
    receiver.answer = (response) => response.end();
    await world.change(webhook.webhook_id, { status: 'enabled' });
    await world.redeliver(sent);
    const delivery = await world.untilDelivery(sent, ({ status }) => status === 'succeeded');
    expect(delivery.attempts).toMatchObject([
      { number: 1, outcome: 'failed' },
      { number: 2, outcome: 'succeeded' },
    ]);
  });

  test('deleted: nothing more is sent, its delivery is canceled and the workflow ends', async ({
    world,
    stack,
    receiver,
  }) => {
    receiver.answer = (response) => response.writeHead(503).end();
    const webhook = await world.subscribe(receiver.url);
    const sent = await world.ping(webhook.webhook_id);
    await world.untilDelivery(sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    await world.call('DELETE', `/v1/webhooks/${webhook.webhook_id}`);
    await (await runOf(stack, webhook.webhook_id)).result();
    const { rows } = await stack.api.connection.pool.query(
      'SELECT status FROM webhook_deliveries WHERE delivery_id = $1',
      [sent.delivery_id],
    );
    expect(rows).toEqual([{ status: 'canceled' }]);
    expect(receiver.received).toHaveLength(1);
  });
});

describe('concurrency of deliveries', () => {
  test('four requests at a time to a new subscription; all events arrive, each by one attempt', async ({
    world,
    receiver,
  }) => {
    const held: (() => void)[] = [];
    receiver.answer = (response) => held.push(() => response.end());
    const webhook = await world.subscribe(receiver.url);
    const sent = await Promise.all(Array.from({ length: 10 }, () => world.ping(webhook.webhook_id)));
    await until(
      () => held.length,
      (count) => count === 4,
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(held).toHaveLength(4);
    for (let answered = 0; answered < sent.length; answered += 1) {
      await until(
        () => held.length,
        (count) => count > 0,
      );
      held.shift()?.();
    }
    for (const delivery of sent) {
      const done = await world.untilDelivery(delivery, ({ status }) => status === 'succeeded');
      expect(done.attempts).toMatchObject([{ number: 1, outcome: 'succeeded' }]);
    }
  });

  test('a subscriber that hangs does not delay another', async ({ world }) => {
    const [hanging, healthy] = [await world.startReceiver(), await world.startReceiver()];
    hanging.answer = () => undefined;
    const [slow, fast] = [await world.subscribe(hanging.url), await world.subscribe(healthy.url)];
    await Promise.all(Array.from({ length: 8 }, () => world.ping(slow.webhook_id)));
    await until(
      () => hanging.received.length,
      (count) => count === 4,
    );
    const sent = await world.ping(fast.webhook_id);
    const delivery = await world.untilDelivery(sent, ({ status }) => status === 'succeeded');
    expect(Date.parse(delivery.attempts[0].at) - Date.parse(delivery.created_at)).toBeLessThan(stretched(LONG_MS / 3));
  });
});
