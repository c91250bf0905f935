/** Deliveries over real PostgreSQL, Temporal and HTTP, verified by the public libraries that subscribers use. */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createGuardedHttp, type GuardedHttp } from '../../activities/providers/guarded-http.ts';
import { webhookDeliveryWorkflowId } from '../../domain/workflow-id.ts';
import type { Caller } from '../support/api.ts';
import { createRecipient, jsonOf, settleBody, untilStatus } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import {
  ping,
  type Received,
  readDelivery,
  startReceiver,
  subscribe,
  until,
  untilDelivery,
} from '../support/webhook.ts';

let stack: TestStack;
let caller: Caller;
/** What happens to a request besides being sent; set by a test. */
let around: (send: () => ReturnType<GuardedHttp['post']>) => ReturnType<GuardedHttp['post']>;

/** How long a request may take; shortened where a test waits for its end. */
let timeoutMs: number;
const SHORT_MS = 1_000;
const LONG_MS = 15_000;

beforeAll(async () => {
  const http = () =>
    createGuardedHttp({
      rules: { allowLocal: true },
      resolve: () => Promise.reject(new Error('no names here')),
      timeoutMs,
    });
  stack = await startStack({
    deliveries: true,
    activities: { guardedHttp: { post: (...request) => around(() => http().post(...request)) } },
  });
});
beforeEach(async () => {
  around = (send) => send();
  timeoutMs = LONG_MS;
  caller = await stack.api.createCaller();
});
afterAll(() => stack.close());

const headersOf = ({ headers }: Received) => ({
  'webhook-id': String(headers['webhook-id']),
  'webhook-timestamp': String(headers['webhook-timestamp']),
  'webhook-signature': String(headers['webhook-signature']),
});
const change = (webhookId: string, body: unknown) =>
  stack.api.call(caller, 'PATCH', `/v1/webhooks/${webhookId}`, body).then(jsonOf);
const redeliver = (delivery: { webhook_id: string; delivery_id: string }) =>
  stack.api.call(caller, 'POST', `/v1/webhooks/${delivery.webhook_id}/deliveries/${delivery.delivery_id}/redeliver`);
const recipientGone = async () => {
  const recipientId = await createRecipient(stack, caller);
  await stack.api.call(caller, 'DELETE', `/v1/recipients/${recipientId}`);
};
const waitingFor = async (webhookId: string): Promise<number> => {
  const { rows } = await stack.api.connection.pool.query(
    'SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND waiting_since IS NOT NULL',
    [webhookId],
  );
  return rows.length;
};
const onlyDelivery = (webhookId: string) =>
  until(
    () => stack.api.call(caller, 'GET', `/v1/webhooks/${webhookId}/deliveries`).then(jsonOf),
    (list) => list.length === 1,
  ).then(([delivery]) => delivery);

describe('a failing endpoint', () => {
  test('leaves a failed attempt with a class word, and nothing of its answer or of the query', async () => {
    const receiver = await startReceiver();
    receiver.answer = (response) => response.writeHead(500).end('leaked-answer');
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    const delivery = await untilDelivery(stack.api, caller, sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    expect(delivery).toMatchObject({
      status: 'pending',
      attempts: [{ number: 1, outcome: 'failed', response_status: 500, error: 'http_status' }],
    });
    const stepMs =
      Date.parse(delivery.next_attempt_at) - Date.parse(delivery.attempts[0].at) - delivery.attempts[0].duration_ms;
    expect(stepMs).toBeGreaterThanOrEqual(4_500);
    expect(stepMs).toBeLessThanOrEqual(5_500);
    const history = await stack.temporal.workflow
      .getHandle(webhookDeliveryWorkflowId(sent.delivery_id, 1))
      .fetchHistory();
    const seen =
      JSON.stringify(delivery) +
      Buffer.from(
        JSON.stringify(history, (_, value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value)),
      ).toString();
    for (const secret of ['leaked-answer', 'query-secret', '127.0.0.1', webhook.secret])
      expect(seen).not.toContain(secret);
    await receiver.close();
  });

  test('that redirects is a failure, and the place it points to is never asked', async () => {
    const [receiver, canary] = [await startReceiver(), await startReceiver()];
    receiver.answer = (response) => response.writeHead(307, { location: canary.url }).end();
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    const delivery = await untilDelivery(stack.api, caller, sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    expect(delivery.attempts[0]).toMatchObject({ response_status: 307, error: 'redirect' });
    expect(canary.received).toEqual([]);
    await Promise.all([receiver.close(), canary.close()]);
  });

  test('410 disables the subscription; what comes then is skipped, and a redelivery is sent', async () => {
    const receiver = await startReceiver();
    receiver.answer = (response) => response.writeHead(410).end();
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    await untilDelivery(stack.api, caller, sent, ({ status }) => status === 'skipped');
    expect(jsonOf(await stack.api.call(caller, 'GET', `/v1/webhooks/${webhook.webhook_id}`))).toMatchObject({
      status: 'disabled',
      disabled_reason: 'gone',
    });
    await recipientGone();
    const [missed] = jsonOf(await stack.api.call(caller, 'GET', `/v1/webhooks/${webhook.webhook_id}/deliveries`));
    expect(missed).toMatchObject({
      event_type: 'recipient.deactivated',
      status: 'skipped',
      attempts: [],
      next_attempt_at: null,
    });
    receiver.answer = (response) => response.end();
    expect((await redeliver(missed)).statusCode).toBe(202);
    await untilDelivery(stack.api, caller, missed, ({ status }) => status === 'succeeded');
    expect(receiver.received.at(-1)?.headers['webhook-id']).toBe(missed.event_id);
    await receiver.close();
  });

  test('an answer that never ends is a timeout', async () => {
    timeoutMs = SHORT_MS;
    const receiver = await startReceiver();
    receiver.answer = (response) => {
      response.write('drip');
    };
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    const delivery = await untilDelivery(stack.api, caller, sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    expect(delivery.attempts[0]).toMatchObject({ error: 'timeout', response_status: null });
    expect(delivery.attempts[0].duration_ms).toBeGreaterThanOrEqual(SHORT_MS - 50);
    await receiver.close();
  });
});

describe('at least once', () => {
  test('a worker that dies after the request and before its record sends the same bytes under the same id and number', async () => {
    const receiver = await startReceiver();
    let deaths = 1;
    around = async (send) => {
      const answer = await send();
      if (deaths > 0) {
        deaths -= 1;
        throw new Error('killed');
      }
      return answer;
    };
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    const delivery = await untilDelivery(stack.api, caller, sent, ({ status }) => status === 'succeeded');
    expect(receiver.received).toHaveLength(2);
    const [first, second] = receiver.received;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(delivery.attempts).toMatchObject([{ number: 1, outcome: 'succeeded', response_status: 200 }]);
    await receiver.close();
  });

  test('a receiver that is down gets the event when it is up again and somebody asks for it now', async () => {
    const first = await startReceiver();
    const webhook = await subscribe(stack.api, caller, first.url);
    await first.close();
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    await untilDelivery(stack.api, caller, sent, ({ attempts }) => attempts[0]?.error === 'connect');
    const second = await startReceiver(first.port);
    await redeliver(sent);
    const delivery = await untilDelivery(stack.api, caller, sent, ({ status }) => status === 'succeeded');
    expect(delivery.attempts).toMatchObject([
      { number: 1, outcome: 'failed' },
      { number: 2, outcome: 'succeeded' },
    ]);
    expect(second.received).toHaveLength(1);
    await second.close();
  });

  test('what was committed while no worker ran is delivered by the next one', async () => {
    const receiver = await startReceiver();
    const webhook = await subscribe(stack.api, caller, receiver.url, ['recipient.deactivated']);
    await stack.stopWorker();
    await recipientGone();
    const delivery = await onlyDelivery(webhook.webhook_id);
    expect(delivery.status).toBe('pending');
    await stack.startWorker();
    await untilDelivery(stack.api, caller, delivery, ({ status }) => status === 'succeeded');
    await receiver.close();
  });

  test('a finished delivery is redelivered as often as it is asked for, the same bytes under the same id, attempts counted on', async () => {
    const receiver = await startReceiver();
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    for (const attempts of [1, 2, 3]) {
      const delivery = await untilDelivery(
        stack.api,
        caller,
        sent,
        (read) => read.status === 'succeeded' && read.attempts.length === attempts,
      );
      expect(delivery.attempts.map(({ number }: { number: number }) => number)).toEqual([1, 2, 3].slice(0, attempts));
      if (attempts < 3)
        expect(jsonOf(await redeliver(sent))).toMatchObject({ delivery_id: sent.delivery_id, status: 'pending' });
    }
    expect(
      new Set(receiver.received.map(({ headers, body }) => `${String(headers['webhook-id'])} ${body.toString()}`)).size,
    ).toBe(1);
    await receiver.close();
  });
});

describe('what a subscriber gets', () => {
  test('each event of a settlement in its turn, signed as the public libraries verify it', async () => {
    const receiver = await startReceiver();
    const webhook = await subscribe(stack.api, caller, receiver.url, [
      'settlement.accepted',
      'settlement.settled',
      'certificate.issued',
    ]);
    const recipientId = await createRecipient(stack, caller);
    const { settlement_id } = jsonOf(
      await stack.api.call(caller, 'POST', '/v2/settle', settleBody(recipientId), {
        'idempotency-key': crypto.randomUUID(),
      }),
    );
    await untilStatus(stack, caller, settlement_id, 'settled');
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
    expect(settled).toMatchObject({ sequence: 5, data: { settlement_id, status: 'settled' } });
    await receiver.close();
  });

  test('signatures of both secrets after a rotation, the new one first', async () => {
    const receiver = await startReceiver();
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const rotated = jsonOf(await stack.api.call(caller, 'POST', `/v1/webhooks/${webhook.webhook_id}/rotate-secret`));
    await ping(stack.api, caller, webhook.webhook_id);
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
    await receiver.close();
  });
});

describe('a subscription that changes', () => {
  test('disabled: what was pending is skipped and its workflow ends; enabled again, redelivery sends it', async () => {
    const receiver = await startReceiver();
    receiver.answer = (response) => response.writeHead(503).end();
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    await untilDelivery(stack.api, caller, sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    await change(webhook.webhook_id, { status: 'disabled' });
    expect(await readDelivery(stack.api, caller, sent)).toMatchObject({ status: 'skipped', next_attempt_at: null });
    expect(await stack.temporal.workflow.getHandle(webhookDeliveryWorkflowId(sent.delivery_id, 1)).result()).toEqual({
      status: 'skipped',
    });
    receiver.answer = (response) => response.end();
    await change(webhook.webhook_id, { status: 'enabled' });
    await redeliver(sent);
    const delivery = await untilDelivery(stack.api, caller, sent, ({ status }) => status === 'succeeded');
    expect(delivery.attempts).toMatchObject([
      { number: 1, outcome: 'failed' },
      { number: 2, outcome: 'succeeded' },
    ]);
    await receiver.close();
  });

  test('deleted: nothing more is sent, and the workflow ends as canceled', async () => {
    const receiver = await startReceiver();
    receiver.answer = (response) => response.writeHead(503).end();
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await ping(stack.api, caller, webhook.webhook_id);
    await untilDelivery(stack.api, caller, sent, ({ attempts }) => attempts[0]?.outcome === 'failed');
    await stack.api.call(caller, 'DELETE', `/v1/webhooks/${webhook.webhook_id}`);
    expect(await stack.temporal.workflow.getHandle(webhookDeliveryWorkflowId(sent.delivery_id, 1)).result()).toEqual({
      status: 'canceled',
    });
    expect(receiver.received).toHaveLength(1);
    await receiver.close();
  });
});

describe('concurrency', () => {
  test('four requests at a time to one subscription, however many events; all arrive, and waiting costs no attempt', async () => {
    const receiver = await startReceiver();
    const held: (() => void)[] = [];
    receiver.answer = (response) => held.push(() => response.end());
    const webhook = await subscribe(stack.api, caller, receiver.url);
    const sent = await Promise.all(Array.from({ length: 10 }, () => ping(stack.api, caller, webhook.webhook_id)));
    await until(
      () => waitingFor(webhook.webhook_id),
      (count) => count === 6,
    );
    expect(held).toHaveLength(4);
    for (let answered = 0; answered < sent.length; answered += 1) {
      await until(
        () => held.length,
        (count) => count > 0,
      );
      held.shift()?.();
    }
    for (const delivery of sent) {
      const done = await untilDelivery(stack.api, caller, delivery, ({ status }) => status === 'succeeded');
      expect(done.attempts).toMatchObject([{ number: 1, outcome: 'succeeded' }]);
    }
    expect(receiver.mostAtOnce()).toBe(4);
    await receiver.close();
  });

  test('a subscriber that hangs delays no other', async () => {
    const [hanging, healthy] = [await startReceiver(), await startReceiver()];
    hanging.answer = () => undefined;
    const [slow, fast] = [
      await subscribe(stack.api, caller, hanging.url),
      await subscribe(stack.api, caller, healthy.url),
    ];
    await Promise.all(Array.from({ length: 8 }, () => ping(stack.api, caller, slow.webhook_id)));
    await until(
      () => hanging.received.length,
      (count) => count === 4,
    );
    const sent = await ping(stack.api, caller, fast.webhook_id);
    const delivery = await untilDelivery(stack.api, caller, sent, ({ status }) => status === 'succeeded');
    expect(Date.parse(delivery.attempts[0].at) - Date.parse(delivery.created_at)).toBeLessThan(LONG_MS / 3);
    await Promise.all([hanging.close(), healthy.close()]);
  });
});
