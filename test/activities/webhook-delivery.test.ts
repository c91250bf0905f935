/** One attempt at a time: run twice, crashed in between, or at a wrong moment; and what follows from its result. */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describe, expect } from 'vitest';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { type AttemptInput, webhookDeliveryActivities } from '../../activities/webhook-delivery.ts';
import { isSignedBy, signWebhook } from '../../activities/webhook-signature.ts';
import { activityDeps } from '../support/activity.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { ping, readDelivery, subscribe } from '../support/webhook.ts';

const DAY_MS = 86_400_000;

type Sent = { readonly url: string; readonly body: Buffer; readonly headers: Readonly<Record<string, string>> };
type Answer = () => Promise<Partial<GuardedAnswer>>;

const OK: GuardedAnswer = {
  status: 200,
  error: null,
  bytes: 0,
  sha256: Buffer.alloc(32),
  retryAfter: undefined,
  durationMs: 5,
};
const succeeding: Answer = async () => ({});
const failing: Answer = async () => ({ status: 500, error: 'http_status' });

/** Each test has an organization and a subscription of its own. */
const test = withApi().extend('world', async ({ api }) => {
  const owner = await api.createCaller();
  const webhook: Json = await subscribe(api, owner, 'http://127.0.0.1:9999/hook');
  const call = (method: Parameters<typeof api.call>[1], url: string, body?: unknown) =>
    api.call(owner, method, url, body);
  const world = {
    webhook,
    /** The requests to the subscriber. */
    sent: [] as Sent[],
    /** How the subscriber answers the next requests. */
    answer: succeeding,
    /** The workflow's time. */
    nowMs: Date.now(),
    call,
    subscribe: (url: string) => subscribe(api, owner, url),
    ping: (webhookId: string = webhook.webhook_id) => ping(api, owner, webhookId),
    readDelivery: (delivery: Json) => readDelivery(api, owner, delivery),
    /** The subscription. */
    read: () => call('GET', `/v1/webhooks/${webhook.webhook_id}`).then(jsonOf),
    rowsOf: async (text: string, ...values: unknown[]) => (await api.connection.pool.query(text, values)).rows,
    attempt: (delivery: Json, overrides: Partial<AttemptInput> = {}) =>
      activities.attemptDelivery({
        deliveryId: delivery.delivery_id,
        webhookId: delivery.webhook_id,
        orgId: owner.orgId,
        generation: 1,
        attempt: 1,
        nowMs: world.nowMs,
        random: 0.5,
        ...overrides,
      }),
  };
  const activities = webhookDeliveryActivities({
    ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
    guardedHttp: {
      post: async (url, body, headers) => {
        world.sent.push({ url, body, headers });
        return { ...OK, ...(await world.answer()) };
      },
    },
  });
  return world;
});

describe('nothing is sent', () => {
  test('for an attempt that has ended: the same state is returned again', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    const first = await world.attempt(delivery);
    expect(first).toEqual({ status: 'pending', waitMs: 5_000, deferred: false });
    expect(await world.attempt(delivery)).toEqual({ ...first, waitMs: 5_005 });
    expect(world.sent).toHaveLength(1);
  });

  test('to a subscription that was disabled or deleted, or for an ended generation', async ({ world }) => {
    const [disabled, canceled] = [await world.ping(), await world.subscribe('http://127.0.0.1:9999/other')];
    const other = await world.ping(canceled.webhook_id);
    // As if the event had been committed at the same moment as the change.
    await world.rowsOf(
      `UPDATE webhooks SET status = 'disabled', disabled_reason = 'requested' WHERE webhook_id = $1`,
      world.webhook.webhook_id,
    );
    await world.rowsOf(
      'UPDATE webhooks SET deleted_at = now(), secret_sealed = NULL WHERE webhook_id = $1',
      canceled.webhook_id,
    );
    await world.rowsOf('UPDATE webhook_deliveries SET requested = false WHERE delivery_id = $1', disabled.delivery_id);
    expect(await world.attempt(disabled)).toEqual({ status: 'skipped', waitMs: null, deferred: false });
    expect(await world.attempt(other)).toEqual({ status: 'canceled', waitMs: null, deferred: false });
    expect(await world.attempt(disabled, { generation: 2 })).toMatchObject({ waitMs: null });
    expect(world.sent).toEqual([]);
    expect(
      await world.rowsOf('SELECT 1 FROM webhook_attempts WHERE webhook_id = $1', world.webhook.webhook_id),
    ).toEqual([]);
  });

  test('while four requests of the subscription are open: deferred, and signalled when a slot is free', async ({
    world,
  }) => {
    const deliveries = await Promise.all(Array.from({ length: 6 }, () => world.ping()));
    const release: (() => void)[] = [];
    world.answer = () => new Promise((resolve) => release.push(() => resolve({})));
    const underWay = deliveries.slice(0, 4).map((delivery) => world.attempt(delivery));
    await expect.poll(() => release.length).toBe(4);
    for (const delivery of deliveries.slice(4))
      expect(await world.attempt(delivery)).toMatchObject({ status: 'pending', deferred: true });
    expect(
      await world.rowsOf(
        'SELECT count(*)::int AS attempts FROM webhook_attempts WHERE webhook_id = $1',
        world.webhook.webhook_id,
      ),
    ).toEqual([{ attempts: 4 }]);
    const signalled = () =>
      world.rowsOf(
        `SELECT object_id FROM outbox WHERE signal = 'placeFreed' AND context->>'webhookId' = $1 ORDER BY outbox_id`,
        world.webhook.webhook_id,
      );
    expect(await signalled()).toEqual([]);
    release[0]?.();
    await underWay[0];
    expect(await signalled()).toEqual([{ object_id: deliveries[4]?.delivery_id }]);
    for (const go of release.slice(1)) go();
    await Promise.all(underWay);
    expect(await signalled()).toEqual(deliveries.slice(4).map(({ delivery_id }) => ({ object_id: delivery_id })));
  });
});

describe('a crash between request and record', () => {
  test('sends the same bytes with the same number and id, as one attempt', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = () => Promise.reject(new Error('killed'));
    await expect(world.attempt(delivery)).rejects.toThrow('killed');
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'pending' }]);
    world.answer = succeeding;
    expect(await world.attempt(delivery)).toEqual({ status: 'succeeded', waitMs: null, deferred: false });
    expect(world.sent[1]?.body).toEqual(world.sent[0]?.body);
    expect(world.sent[1]?.headers['webhook-id']).toBe(world.sent[0]?.headers['webhook-id']);
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'succeeded' }]);
  });

  test('frees its slot when its lease ends', async ({ world }) => {
    const deliveries = await Promise.all(Array.from({ length: 5 }, () => world.ping()));
    world.answer = () => Promise.reject(new Error('killed'));
    for (const delivery of deliveries.slice(0, 4)) await expect(world.attempt(delivery)).rejects.toThrow();
    world.answer = succeeding;
    expect(await world.attempt(deliveries[4])).toMatchObject({ deferred: true });
    await world.rowsOf(
      `UPDATE webhook_attempts SET lease_expires_at = now() WHERE delivery_id = $1`,
      deliveries[0]?.delivery_id,
    );
    expect(await world.attempt(deliveries[4])).toMatchObject({ status: 'succeeded', deferred: false });
  });
});

describe('after a failure', () => {
  test.for([
    [503, '7', 7_350],
    [429, '100000', 10_000],
    [503, '1', 5_250],
    [500, '9', 5_000],
    [503, 'soon', 5_000],
  ] as const)('%i with Retry-After %s waits %i ms', async ([status, retryAfter, waitMs], { world }) => {
    world.answer = async () => ({ status, error: 'http_status', retryAfter });
    expect(await world.attempt(await world.ping())).toMatchObject({
      status: 'pending',
      waitMs,
    });
  });

  test('of the eighth attempt, the delivery is exhausted', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    for (let n = 1; n <= 8; n += 1)
      expect(await world.attempt(delivery, { attempt: n })).toMatchObject({
        status: n === 8 ? 'exhausted' : 'pending',
      });
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'exhausted', next_attempt_at: null });
  });

  test('410 disables the subscription, skips pending deliveries and signals their workflows', async ({ world }) => {
    const [first, second] = [await world.ping(), await world.ping()];
    world.answer = async () => ({ status: 410, error: 'http_status' });
    expect(await world.attempt(first)).toEqual({ status: 'skipped', waitMs: null, deferred: false });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    expect(await world.readDelivery(second)).toMatchObject({ status: 'skipped' });
    const signalled = await world.rowsOf(
      `SELECT object_id FROM outbox WHERE signal = 'subscriptionChanged' AND context->>'webhookId' = $1`,
      world.webhook.webhook_id,
    );
    expect(signalled.map(({ object_id }) => object_id)).toEqual(
      expect.arrayContaining([first.delivery_id, second.delivery_id]),
    );
  });

  test('five days of failures disable the subscription, whichever deliveries failed', async ({ world }) => {
    world.answer = failing;
    await world.attempt(await world.ping());
    world.nowMs += 5 * DAY_MS - 1_000;
    await world.attempt(await world.ping());
    expect(await world.read()).toMatchObject({ status: 'enabled' });
    world.nowMs += 1_000;
    expect(await world.attempt(await world.ping())).toMatchObject({ status: 'skipped' });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
  });

  test('one success in five days keeps it enabled, and enabling it restarts the count', async ({ world }) => {
    world.answer = failing;
    await world.attempt(await world.ping());
    world.nowMs += 3 * DAY_MS;
    world.answer = succeeding;
    await world.attempt(await world.ping());
    world.answer = failing;
    await world.attempt(await world.ping());
    world.nowMs += 3 * DAY_MS;
    await world.attempt(await world.ping());
    expect(await world.read()).toMatchObject({ status: 'enabled' });
    for (const status of ['disabled', 'enabled'])
      await world.call('PATCH', `/v1/webhooks/${world.webhook.webhook_id}`, { status });
    world.nowMs += 3 * DAY_MS;
    await world.attempt(await world.ping());
    expect(await world.read()).toMatchObject({ status: 'enabled' });
  });
});

describe('signatures', () => {
  test('match the published test vector', () => {
    const secret = Buffer.from('plJ3nmyCDGBKInavdOK15jsl', 'base64');
    const content = {
      id: 'msg_loFOjxBNrRLzqYUf',
      timestamp: 1_731_705_121,
      body: Buffer.from('{"event_type":"ping","data":{"success":true}}'),
    };
    const signature = 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=';
    expect(signWebhook([secret], content)).toBe(signature);
    expect(isSignedBy(secret, `v1,AAAA ${signature}`, content)).toBe(true);
    expect(isSignedBy(secret, signature, { ...content, timestamp: content.timestamp + 1 })).toBe(false);
    expect(isSignedBy(Buffer.alloc(24), signature, content)).toBe(false);
  });

  test('use both secrets for 24 hours after a rotation, then only the new one', async ({ world }) => {
    const rotated = jsonOf(await world.call('POST', `/v1/webhooks/${world.webhook.webhook_id}/rotate-secret`));
    const at = Date.parse(rotated.updated_at);
    world.nowMs = at + DAY_MS - 1;
    await world.attempt(await world.ping());
    world.nowMs = at + DAY_MS;
    await world.attempt(await world.ping());
    const [during, after] = world.sent;
    const verify = (secret: string, request: Sent | undefined) =>
      new StandardWebhook(secret).verify(request?.body.toString() ?? '', { ...request?.headers });
    expect(verify(world.webhook.secret, during)).toEqual(verify(rotated.secret, during));
    expect(verify(rotated.secret, after)).toMatchObject({ type: 'webhook.ping' });
    expect(() => verify(world.webhook.secret, after)).toThrow();
  });
});
