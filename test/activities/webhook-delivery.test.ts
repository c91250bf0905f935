/** One attempt at a time: run twice, crashed in between, at the wrong moment; what follows from its outcome. */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { type AttemptInput, webhookDeliveryActivities } from '../../activities/webhook-delivery.ts';
import { isSignedBy, signWebhook } from '../../activities/webhook-signature.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { ping, readDelivery, subscribe } from '../support/webhook.ts';

const DAY_MS = 86_400_000;

let api: TestApi;
let caller: Caller;
let webhook: Json;
let sent: { url: string; body: Buffer; headers: Readonly<Record<string, string>> }[];
let answer: () => Promise<Partial<GuardedAnswer>>;
let activities: ReturnType<typeof webhookDeliveryActivities>;
let nowMs: number;

beforeAll(async () => {
  api = await createTestApi();
  const post = async (url: string, body: Buffer, headers: Readonly<Record<string, string>>): Promise<GuardedAnswer> => {
    sent.push({ url, body, headers });
    return {
      status: 200,
      error: null,
      bytes: 0,
      sha256: Buffer.alloc(32),
      retryAfter: undefined,
      durationMs: 5,
      ...(await answer()),
    };
  };
  activities = webhookDeliveryActivities({
    ...activityDeps(api, 'http://127.0.0.1', api.deps.dispatcher),
    guardedHttp: { post },
  });
});
beforeEach(async () => {
  sent = [];
  answer = async () => ({});
  nowMs = Date.now();
  caller = await api.createCaller();
  webhook = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
});
afterAll(() => api.close());

const failing = async (): Promise<Partial<GuardedAnswer>> => ({ status: 500, error: 'http_status' });
const read = () => api.call(caller, 'GET', `/v1/webhooks/${webhook.webhook_id}`).then(jsonOf);
const rowsOf = async (text: string, ...values: unknown[]) => (await api.connection.pool.query(text, values)).rows;
const attempt = (delivery: Json, overrides: Partial<AttemptInput> = {}) =>
  activities.attemptDelivery({
    deliveryId: delivery.delivery_id,
    webhookId: delivery.webhook_id,
    orgId: caller.orgId,
    generation: 1,
    attempt: 1,
    nowMs,
    random: 0.5,
    ...overrides,
  });

describe('nothing is sent', () => {
  test('for an attempt whose outcome is recorded: the same answer again', async () => {
    const delivery = await ping(api, caller, webhook.webhook_id);
    answer = failing;
    const first = await attempt(delivery);
    expect(first).toEqual({ status: 'pending', waitMs: 5_000, deferred: false });
    expect(await attempt(delivery)).toEqual({ ...first, waitMs: 5_005 });
    expect(sent).toHaveLength(1);
  });

  test('to a subscription that was disabled or deleted since, or for a generation that is over', async () => {
    const [disabled, canceled] = [
      await ping(api, caller, webhook.webhook_id),
      await subscribe(api, caller, 'http://127.0.0.1:9999/other'),
    ];
    const other = await ping(api, caller, canceled.webhook_id);
    // As if the event had been committed at the very moment of the change.
    await rowsOf(
      `UPDATE webhooks SET status = 'disabled', disabled_reason = 'requested' WHERE webhook_id = $1`,
      webhook.webhook_id,
    );
    await rowsOf(
      'UPDATE webhooks SET deleted_at = now(), secret_sealed = NULL WHERE webhook_id = $1',
      canceled.webhook_id,
    );
    await rowsOf('UPDATE webhook_deliveries SET requested = false WHERE delivery_id = $1', disabled.delivery_id);
    expect(await attempt(disabled)).toEqual({ status: 'skipped', waitMs: null, deferred: false });
    expect(await attempt(other)).toEqual({ status: 'canceled', waitMs: null, deferred: false });
    expect(await attempt(disabled, { generation: 2 })).toMatchObject({ waitMs: null });
    expect(sent).toEqual([]);
    expect(await rowsOf('SELECT 1 FROM webhook_attempts WHERE webhook_id = $1', webhook.webhook_id)).toEqual([]);
  });

  test('while four requests to the subscription are under way: deferred, no attempt made, and told when a place is free', async () => {
    const deliveries = await Promise.all(Array.from({ length: 6 }, () => ping(api, caller, webhook.webhook_id)));
    const release: (() => void)[] = [];
    answer = () => new Promise((resolve) => release.push(() => resolve({})));
    const underWay = deliveries.slice(0, 4).map((delivery) => attempt(delivery));
    await expect.poll(() => release.length).toBe(4);
    for (const delivery of deliveries.slice(4))
      expect(await attempt(delivery)).toMatchObject({ status: 'pending', deferred: true });
    expect(
      await rowsOf('SELECT count(*)::int AS attempts FROM webhook_attempts WHERE webhook_id = $1', webhook.webhook_id),
    ).toEqual([{ attempts: 4 }]);
    const rung = () =>
      rowsOf(
        `SELECT object_id FROM outbox WHERE signal = 'placeFreed' AND context->>'webhookId' = $1 ORDER BY outbox_id`,
        webhook.webhook_id,
      );
    expect(await rung()).toEqual([]);
    release[0]?.();
    await underWay[0];
    expect(await rung()).toEqual([{ object_id: deliveries[4]?.delivery_id }]);
    for (const go of release.slice(1)) go();
    await Promise.all(underWay);
    expect(await rung()).toEqual(deliveries.slice(4).map(({ delivery_id }) => ({ object_id: delivery_id })));
  });
});

describe('a crash between request and record', () => {
  test('sends the same bytes under the same number and id, and leaves one attempt', async () => {
    const delivery = await ping(api, caller, webhook.webhook_id);
    answer = () => Promise.reject(new Error('killed'));
    await expect(attempt(delivery)).rejects.toThrow('killed');
    expect((await readDelivery(api, caller, delivery)).attempts).toMatchObject([{ number: 1, outcome: 'pending' }]);
    answer = async () => ({});
    expect(await attempt(delivery)).toEqual({ status: 'succeeded', waitMs: null, deferred: false });
    expect(sent[1]?.body).toEqual(sent[0]?.body);
    expect(sent[1]?.headers['webhook-id']).toBe(sent[0]?.headers['webhook-id']);
    expect((await readDelivery(api, caller, delivery)).attempts).toMatchObject([{ number: 1, outcome: 'succeeded' }]);
  });

  test('gives its place back when its lease is over', async () => {
    const deliveries = await Promise.all(Array.from({ length: 5 }, () => ping(api, caller, webhook.webhook_id)));
    answer = () => Promise.reject(new Error('killed'));
    for (const delivery of deliveries.slice(0, 4)) await expect(attempt(delivery)).rejects.toThrow();
    answer = async () => ({});
    expect(await attempt(deliveries[4])).toMatchObject({ deferred: true });
    await rowsOf(
      `UPDATE webhook_attempts SET lease_expires_at = now() WHERE delivery_id = $1`,
      deliveries[0]?.delivery_id,
    );
    expect(await attempt(deliveries[4])).toMatchObject({ status: 'succeeded', deferred: false });
  });
});

describe('after a failure', () => {
  test.each([
    [503, '7', 7_350],
    [429, '100000', 10_000],
    [503, '1', 5_250],
    [500, '9', 5_000],
    [503, 'soon', 5_000],
  ])('%i with Retry-After %s waits %i ms', async (status, retryAfter, waitMs) => {
    answer = async () => ({ status, error: 'http_status', retryAfter });
    expect(await attempt(await ping(api, caller, webhook.webhook_id))).toMatchObject({ status: 'pending', waitMs });
  });

  test('of the eighth attempt the delivery is exhausted', async () => {
    const delivery = await ping(api, caller, webhook.webhook_id);
    answer = failing;
    for (let n = 1; n <= 8; n += 1)
      expect(await attempt(delivery, { attempt: n })).toMatchObject({ status: n === 8 ? 'exhausted' : 'pending' });
    expect(await readDelivery(api, caller, delivery)).toMatchObject({ status: 'exhausted', next_attempt_at: null });
  });

  test('410 disables the subscription and skips whatever is pending, telling each workflow', async () => {
    const [first, second] = [await ping(api, caller, webhook.webhook_id), await ping(api, caller, webhook.webhook_id)];
    answer = async () => ({ status: 410, error: 'http_status' });
    expect(await attempt(first)).toEqual({ status: 'skipped', waitMs: null, deferred: false });
    expect(await read()).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    expect(await readDelivery(api, caller, second)).toMatchObject({ status: 'skipped' });
    const told = await rowsOf(
      `SELECT object_id FROM outbox WHERE signal = 'subscriptionChanged' AND context->>'webhookId' = $1`,
      webhook.webhook_id,
    );
    expect(told.map(({ object_id }) => object_id)).toEqual(
      expect.arrayContaining([first.delivery_id, second.delivery_id]),
    );
  });

  test('five days of nothing but failure disable the subscription, whichever deliveries failed', async () => {
    answer = failing;
    await attempt(await ping(api, caller, webhook.webhook_id));
    nowMs += 5 * DAY_MS - 1_000;
    await attempt(await ping(api, caller, webhook.webhook_id));
    expect(await read()).toMatchObject({ status: 'enabled' });
    nowMs += 1_000;
    expect(await attempt(await ping(api, caller, webhook.webhook_id))).toMatchObject({ status: 'skipped' });
    expect(await read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
  });

  test('one success in five days keeps it enabled, and enabling starts the count again', async () => {
    answer = failing;
    await attempt(await ping(api, caller, webhook.webhook_id));
    nowMs += 3 * DAY_MS;
    answer = async () => ({});
    await attempt(await ping(api, caller, webhook.webhook_id));
    answer = failing;
    await attempt(await ping(api, caller, webhook.webhook_id));
    nowMs += 3 * DAY_MS;
    await attempt(await ping(api, caller, webhook.webhook_id));
    expect(await read()).toMatchObject({ status: 'enabled' });
    for (const status of ['disabled', 'enabled'])
      await api.call(caller, 'PATCH', `/v1/webhooks/${webhook.webhook_id}`, { status });
    nowMs += 3 * DAY_MS;
    await attempt(await ping(api, caller, webhook.webhook_id));
    expect(await read()).toMatchObject({ status: 'enabled' });
  });
});

describe('signatures', () => {
  test('are those of the published test vector', () => {
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

  test('are of both secrets for 24 hours after a rotation, then of the new one alone', async () => {
    const rotated = jsonOf(await api.call(caller, 'POST', `/v1/webhooks/${webhook.webhook_id}/rotate-secret`));
    const at = Date.parse(rotated.updated_at);
    nowMs = at + DAY_MS - 1;
    await attempt(await ping(api, caller, webhook.webhook_id));
    nowMs = at + DAY_MS;
    await attempt(await ping(api, caller, webhook.webhook_id));
    const [during, after] = sent;
    const verify = (secret: string, request: (typeof sent)[number] | undefined) =>
      new StandardWebhook(secret).verify(request?.body.toString() ?? '', { ...request?.headers });
    expect(verify(webhook.secret, during)).toEqual(verify(rotated.secret, during));
    expect(verify(rotated.secret, after)).toMatchObject({ type: 'webhook.ping' });
    expect(() => verify(webhook.secret, after)).toThrow();
  });
});
