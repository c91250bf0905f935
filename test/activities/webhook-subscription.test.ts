/**
 * The rounds of a subscription: run twice, crashed in between, or at a wrong moment; and what follows from the results.
 */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describe, expect, vi } from 'vitest';
import type { GuardedAnswer } from '../../activities/providers/guarded-http.ts';
import { isSignedBy, signWebhook } from '../../activities/webhook-signature.ts';
import { type RoundResult, webhookSubscriptionActivities } from '../../activities/webhook-subscription.ts';
import { recordEvent } from '../../db/queries/event.ts';
import { deleteExpiredSecrets } from '../../db/queries/webhook.ts';
import { RETRY_JITTER } from '../../domain/webhook.ts';
import { activityDeps } from '../support/activity.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { recordStatements } from '../support/statement-count.ts';
import { ping, readDelivery, subscribe } from '../support/webhook.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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
const test = withApi().extend('world', async ({ api, onTestFinished }) => {
  const owner = await api.createCaller();
  const webhook: Json = await subscribe(api, owner, 'http://127.0.0.1:9999/hook');
  const call = (method: Parameters<typeof api.call>[1], url: string, body?: unknown) =>
    api.call(owner, method, url, body);
  // In the middle of the spread of retries.
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
  onTestFinished(() => random.mockRestore());
  const rowsOf = async (text: string, ...values: unknown[]) => (await api.connection.pool.query(text, values)).rows;
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
    /** So many pings, written in one transaction. */
    burst: (count: number) =>
      api.connection.db.transaction(async (tx) => {
        for (let n = 0; n < count; n += 1) {
          await recordEvent(tx, {
            orgId: owner.orgId,
            objectType: 'webhook',
            objectId: webhook.webhook_id,
            type: 'webhook.ping',
            data: {},
            at: new Date(),
            requestId: 'burst',
          });
        }
      }),
    redeliver: ({ delivery_id, webhook_id }: Json) =>
      call('POST', `/v1/webhooks/${webhook_id}/deliveries/${delivery_id}/redeliver`).then(jsonOf),
    readDelivery: (delivery: Json) => readDelivery(api, owner, delivery),
    /** The subscription. */
    read: () => call('GET', `/v1/webhooks/${webhook.webhook_id}`).then(jsonOf),
    rowsOf,
    /** One round of the workflow. */
    round: (webhookId: string = webhook.webhook_id): Promise<RoundResult> =>
      deliverDue({ webhookId, orgId: owner.orgId, nowMs: world.nowMs }),
    /** Whether commits wake nothing. */
    isRunning: async (): Promise<boolean> =>
      (await rowsOf('SELECT running FROM webhook_runs WHERE webhook_id = $1', webhook.webhook_id))[0]?.running,
  };
  const { deliverDue } = webhookSubscriptionActivities({
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
  test('nothing before the next attempt is due: the round says when it is', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    const { waitMs } = await world.round();
    expect(waitMs).toBeGreaterThan(3_000);
    expect(waitMs).toBeLessThanOrEqual(5_000 * (1 + RETRY_JITTER));
    expect(await world.round()).toMatchObject({ standing: { pending: 1, lastOutcome: null } });
    expect(world.sent).toHaveLength(1);
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'failed' }]);
  });

  test('nothing to a disabled or deleted subscription, and its deliveries end', async ({ world }) => {
    const other = await world.subscribe('http://127.0.0.1:9999/other');
    const [disabled, canceled] = [await world.ping(), await world.ping(other.webhook_id)];
    await world.call('PATCH', `/v1/webhooks/${world.webhook.webhook_id}`, { status: 'disabled' });
    await world.call('DELETE', `/v1/webhooks/${other.webhook_id}`);
    expect(await world.readDelivery(disabled)).toMatchObject({ status: 'skipped', next_attempt_at: null });
    expect(await world.round()).toMatchObject({ waitMs: null, standing: { status: 'disabled', pending: 0 } });
    expect(await world.round(other.webhook_id)).toMatchObject({ waitMs: null, standing: { status: 'deleted' } });
    expect(world.sent).toEqual([]);
    expect(
      await world.rowsOf('SELECT status FROM webhook_deliveries WHERE delivery_id = ANY ($1) ORDER BY status', [
        disabled.delivery_id,
        canceled.delivery_id,
      ]),
    ).toEqual([{ status: 'canceled' }, { status: 'skipped' }]);
    expect(
      await world.rowsOf('SELECT 1 FROM webhook_attempts WHERE webhook_id = $1', world.webhook.webhook_id),
    ).toEqual([]);
  });

  test('no fifth request of a new subscription while four are open; it follows when one is answered', async ({
    world,
  }) => {
    await world.burst(6);
    const release: (() => void)[] = [];
    world.answer = () => new Promise((resolve) => release.push(() => resolve({})));
    const round = world.round();
    await expect.poll(() => release.length).toBe(4);
    const attempts = () =>
      world.rowsOf(
        'SELECT count(*)::int AS attempts FROM webhook_attempts WHERE webhook_id = $1',
        world.webhook.webhook_id,
      );
    expect(await attempts()).toEqual([{ attempts: 4 }]);
    release[0]?.();
    await expect.poll(() => release.length).toBe(6);
    for (const go of release.slice(1)) go();
    expect(await round).toMatchObject({ waitMs: null });
    expect(world.sent).toHaveLength(6);
  });
});

describe('requests in flight', () => {
  test('grow to 32 while the endpoint answers well, and one is left while it fails', async ({ world }) => {
    await world.burst(60);
    let atOnce = 0;
    let most = 0;
    world.answer = async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((resolve) => setTimeout(resolve, 50));
      atOnce -= 1;
      return {};
    };
    const { inFlight } = await world.round();
    expect([most > 16, most <= 32, inFlight]).toEqual([true, true, 32]);
    await world.burst(4);
    world.answer = failing;
    expect(await world.round()).toMatchObject({ inFlight: 1 });
    most = 0;
    await world.burst(4);
    world.answer = async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((resolve) => setTimeout(resolve, 10));
      atOnce -= 1;
      return { status: 500, error: 'http_status' };
    };
    await world.round();
    expect(most).toBe(1);
  });

  test('are not claimed one by one: a delivery in a burst costs less than one statement', async ({ world, api }) => {
    await world.burst(200);
    world.answer = async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return {};
    };
    const statements = recordStatements(api.connection.pool);
    await world.round();
    expect(world.sent).toHaveLength(200);
    expect(statements().length).toBeLessThan(200);
  });
});

describe('a crash between request and record', () => {
  test('sends the same bytes with the same number and id, as one attempt', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = () => Promise.reject(new Error('killed'));
    await expect(world.round()).rejects.toThrow('killed');
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'pending' }]);
    expect(await world.isRunning()).toBe(true);
    world.answer = succeeding;
    expect(await world.round()).toMatchObject({ waitMs: null });
    expect(world.sent[1]?.body).toEqual(world.sent[0]?.body);
    expect(world.sent[1]?.headers['webhook-id']).toBe(world.sent[0]?.headers['webhook-id']);
    expect((await world.readDelivery(delivery)).attempts).toMatchObject([{ number: 1, outcome: 'succeeded' }]);
    expect(await world.isRunning()).toBe(false);
  });

  test('one request is lost, and the results of the others are recorded', async ({ world }) => {
    const deliveries = [await world.ping(), await world.ping(), await world.ping()];
    world.answer = () => (world.sent.length === 2 ? Promise.reject(new Error('killed')) : succeeding());
    await expect(world.round()).rejects.toThrow('killed');
    const outcomes = await Promise.all(
      deliveries.map(async (delivery) => (await world.readDelivery(delivery)).attempts[0]?.outcome),
    );
    expect(outcomes.sort()).toEqual(['pending', 'succeeded', 'succeeded']);
  });

  test('a run that comes back after another took over changes nothing that the other has recorded', async ({
    world,
  }) => {
    const delivery = await world.ping();
    let release = (): void => undefined;
    world.answer = () =>
      new Promise((resolve) => {
        release = () => resolve({ status: 500, error: 'http_status' });
      });
    const frozen = world.round();
    await expect.poll(() => world.sent.length).toBe(1);
    world.answer = succeeding;
    await world.round();
    release();
    await frozen;
    expect(await world.readDelivery(delivery)).toMatchObject({
      status: 'succeeded',
      attempts: [{ number: 1, outcome: 'succeeded', response_status: 200 }],
    });
  });
});

describe('a redelivery', () => {
  test('is made when the attempt fails, if it is requested during the last attempt', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    for (let n = 1; n < 8; n += 1) {
      await world.round();
      world.nowMs += DAY_MS / 2;
    }
    world.answer = async () => {
      if (world.sent.length === 8) await world.redeliver(delivery);
      return await (world.sent.length === 9 ? succeeding() : failing());
    };
    await world.round();
    const { status, attempts } = await world.readDelivery(delivery);
    expect([status, attempts.length]).toEqual(['succeeded', 9]);
    expect(attempts[8]).toMatchObject({ number: 9, outcome: 'succeeded' });
  });

  test('follows at once, not after the wait, if it is requested during an attempt', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = async () => {
      if (world.sent.length > 1) return await succeeding();
      await world.redeliver(delivery);
      return await failing();
    };
    await world.round();
    expect(await world.readDelivery(delivery)).toMatchObject({
      status: 'succeeded',
      attempts: [{ outcome: 'failed' }, { outcome: 'succeeded' }],
    });
  });
});

describe('a failed attempt', () => {
  test.for([
    [503, '7', 7_350],
    [429, '100000', 10_000],
    [503, '1', 5_250],
    [500, '9', 5_000],
    [503, 'soon', 5_000],
  ] as const)('%i with Retry-After %s waits %i ms', async ([status, retryAfter, waitMs], { world }) => {
    world.answer = async () => ({ status, error: 'http_status', retryAfter });
    const delivery = await world.ping();
    world.nowMs = Date.now() + 1_000;
    await world.round();
    const { next_attempt_at, attempts } = await world.readDelivery(delivery);
    const [{ at, duration_ms }] = attempts;
    expect(Date.parse(next_attempt_at) - Date.parse(at) - duration_ms).toBe(waitMs);
  });

  test('the eighth failure exhausts the delivery', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    for (let n = 1; n <= 8; n += 1) {
      await world.round();
      expect(await world.readDelivery(delivery)).toMatchObject({ status: n === 8 ? 'exhausted' : 'pending' });
      world.nowMs += DAY_MS / 2;
    }
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'exhausted', next_attempt_at: null });
  });

  test('410 disables the subscription and skips pending deliveries, its own as well', async ({ world }) => {
    const deliveries: Json[] = [];
    for (let n = 0; n < 6; n += 1) deliveries.push(await world.ping());
    // Not asked for, so that none is sent to a disabled subscription.
    await world.rowsOf(
      'UPDATE webhook_deliveries SET requested = false WHERE webhook_id = $1',
      world.webhook.webhook_id,
    );
    world.answer = async () => ({ status: 410, error: 'http_status' });
    expect(await world.round()).toMatchObject({
      waitMs: null,
      standing: { status: 'disabled', disabledReason: 'gone' },
    });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    for (const delivery of deliveries) expect(await world.readDelivery(delivery)).toMatchObject({ status: 'skipped' });
    expect(world.sent).toHaveLength(4);
  });

  test('five days of failures disable the subscription, whichever deliveries failed', async ({ world }) => {
    world.answer = failing;
    await world.ping();
    await world.round();
    const startMs = world.nowMs;
    world.nowMs = startMs + 5 * DAY_MS - 60_000;
    await world.ping();
    await world.round();
    expect(await world.read()).toMatchObject({ status: 'enabled' });
    world.nowMs = startMs + 5 * DAY_MS + 60_000;
    const last = await world.ping();
    await world.round();
    expect(await world.readDelivery(last)).toMatchObject({ status: 'skipped' });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
  });

  test('one success in five days keeps it enabled, and enabling it restarts the count', async ({ world }) => {
    const attempt = async (answer: Answer): Promise<void> => {
      await world.ping();
      world.answer = answer;
      await world.round();
    };
    await attempt(failing);
    world.nowMs += 3 * DAY_MS;
    await attempt(succeeding);
    await attempt(failing);
    world.nowMs += 3 * DAY_MS;
    await attempt(failing);
    expect(await world.read()).toMatchObject({ status: 'enabled' });
    for (const status of ['disabled', 'enabled'])
      await world.call('PATCH', `/v1/webhooks/${world.webhook.webhook_id}`, { status });
    world.nowMs += 3 * DAY_MS;
    await attempt(failing);
    expect(await world.read()).toMatchObject({ status: 'enabled' });
  });
});

describe('the signatures of a delivery', () => {
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

  test('use each earlier secret for 24 hours after its own rotation, the newest secret first', async ({
    api,
    world,
  }) => {
    const rotate = async (): Promise<string> =>
      jsonOf(await world.call('POST', `/v1/webhooks/${world.webhook.webhook_id}/rotate-secret`)).secret;
    const secrets: string[] = [world.webhook.secret];
    for (let n = 0; n < 3; n += 1) secrets.unshift(await rotate());
    const at = Date.now();
    // The secrets end an hour after each other, the oldest first.
    await world.rowsOf(
      `UPDATE webhook_earlier_secrets s SET expires_at = $2::timestamptz + place * interval '1 hour' FROM (
        SELECT secret_id, row_number() OVER (ORDER BY secret_id) AS place FROM webhook_earlier_secrets WHERE webhook_id = $1
      ) placed WHERE placed.secret_id = s.secret_id`,
      world.webhook.webhook_id,
      new Date(at).toISOString(),
    );
    for (const hours of [0.5, 1, 2, 3]) {
      world.nowMs = at + hours * HOUR_MS;
      await world.ping();
      await world.round();
    }
    const verify = (secret: string, { body, headers }: Sent, signature: string) =>
      new StandardWebhook(secret).verify(body.toString(), { ...headers, 'webhook-signature': signature });
    for (const [place, request] of world.sent.entries()) {
      const signatures = request.headers['webhook-signature']?.split(' ') ?? [];
      expect(signatures).toHaveLength(4 - place);
      for (const [nth, signature] of signatures.entries())
        expect(verify(secrets[nth] ?? '', request, signature)).toMatchObject({ type: 'webhook.ping' });
    }
    const expire = () => deleteExpiredSecrets(api.connection.db, new Date(at + 2 * HOUR_MS));
    expect([await expire(), await expire()]).toEqual([2, 0]);
    expect(
      await world.rowsOf('SELECT 1 FROM webhook_earlier_secrets WHERE webhook_id = $1', world.webhook.webhook_id),
    ).toHaveLength(1);
  });
});
