/** The retries of a subscription by its workflow, and what follows from the results of attempts. */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describe, expect } from 'vitest';
import { signWebhook } from '../../activities/webhook-signature.ts';
import { deleteExpiredSecrets } from '../../db/queries/webhook.ts';
import { RETRY_JITTER } from '../../domain/webhook.ts';
import { jsonOf } from '../support/partner.ts';
import { ALWAYS } from '../support/replay.ts';
import { answered } from '../support/webhook.ts';
import { type Answer, failing, type Sent, slowly, succeeding, test } from './delivery.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('nothing is sent', () => {
  test('before the retry is due: the round says when it is', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    const { waitMs } = await world.attempt();
    expect(waitMs).toBeGreaterThan(3_000);
    expect(await world.round()).toMatchObject({ found: { waiting: 1, lastOutcome: null } });
    expect(world.sent).toHaveLength(1);
    const { next_attempt_at, attempts } = await world.readDelivery(delivery);
    expect(attempts).toMatchObject([{ number: 1, outcome: 'failed' }]);
    // By the delivery's own times: on a busy machine the round is later than the attempt.
    const delayMs = Date.parse(next_attempt_at) - Date.parse(attempts[0].at) - attempts[0].duration_ms;
    expect(delayMs).toBeGreaterThanOrEqual(5_000 * (1 - RETRY_JITTER) - 1);
    expect(delayMs).toBeLessThanOrEqual(5_000 * (1 + RETRY_JITTER) + 1);
  });

  test('to a disabled or deleted subscription, whose deliveries end', async ({ api, world }) => {
    const other = await world.subscribe('http://127.0.0.1:9999/other');
    const [disabled, canceled] = [await world.ping(), await world.ping(other.webhook_id)];
    await world.call('PATCH', '', { status: 'disabled' });
    await api.call(world.owner, 'DELETE', `/v1/webhooks/${other.webhook_id}`);
    expect(await world.readDelivery(disabled)).toMatchObject({ status: 'skipped', next_attempt_at: null });
    const subscriptions = [world.webhook.webhook_id, other.webhook_id];
    expect(await world.rowsOf('SELECT 1 FROM outbox WHERE object_id = ANY ($1)', subscriptions)).toHaveLength(2);
    expect(await world.round()).toMatchObject({ waitMs: null, found: { status: 'disabled', waiting: 0 } });
    expect(await world.round(other.webhook_id)).toMatchObject({ waitMs: null, found: { status: 'deleted' } });
    await world.deliver();
    expect(world.sent).toEqual([]);
    const ids = [disabled.delivery_id, canceled.delivery_id];
    expect(
      await world.rowsOf('SELECT status FROM webhook_deliveries WHERE delivery_id = ANY ($1) ORDER BY status', ids),
    ).toEqual([{ status: 'canceled' }, { status: 'skipped' }]);
    expect(await world.rowsOf('SELECT 1 FROM webhook_attempts WHERE delivery_id = ANY ($1)', ids)).toEqual([]);
  });
});

test('a round of a subscription that does not exist fails, and is not repeated', async ({ world }) => {
  await expect(world.round('no-such-webhook')).rejects.toMatchObject({ code: 'not_found' });
});

describe('the retries of a subscription', () => {
  test('are sent one after the other while the endpoint fails', async ({ world }) => {
    world.answer = failing;
    await world.burst(6);
    await world.attempt();
    world.nowMs += 60_000;
    const slow = slowly(answered(500), 5);
    world.answer = slow.answer;
    world.sent.length = 0;
    await world.round();
    expect([world.sent.length, slow.most]).toEqual([6, 1]);
  });

  test('are given to the lane as soon as one succeeds', async ({ world }) => {
    world.answer = failing;
    await world.burst(6);
    await world.attempt();
    world.nowMs += 60_000;
    world.answer = succeeding;
    world.sent.length = 0;
    expect(await world.round()).toMatchObject({ waitMs: null });
    expect([world.sent.length, await world.isDue()]).toEqual([1, true]);
    await world.deliver();
    expect(world.sent).toHaveLength(6);
  });
});

describe('a redelivery', () => {
  test.for(['enabled', 'disabled'])(
    'begins one generation, if it is requested during the last attempt, of a subscription that is %s by then',
    async (status, { world }) => {
      const delivery = await world.ping();
      world.answer = failing;
      for (let n = 1; n < 8; n += 1) {
        await world.attempt();
        world.nowMs += DAY_MS / 2;
      }
      world.answer = async () => {
        if (world.sent.length === 8) {
          await world.call('PATCH', '', { status });
          await world.redeliver(delivery);
        }
        return await (world.sent.length === 9 ? succeeding('') : failing(''));
      };
      await world.attempt();
      await world.deliver();
      const sent = await world.readDelivery(delivery);
      expect(sent.status).toBe('succeeded');
      expect(sent.attempts.at(-1)).toMatchObject({ number: 9, outcome: 'succeeded' });
      const begun =
        'SELECT generation, cardinality(redelivered_at) AS today FROM webhook_deliveries WHERE delivery_id = $1';
      expect(await world.rowsOf(begun, delivery.delivery_id)).toEqual([{ generation: 2, today: 1 }]);
    },
  );

  test('to a disabled subscription is one attempt: if that fails, it is skipped again, and who disabled it stays', async ({
    world,
  }) => {
    const delivery = await world.ping();
    await world.call('PATCH', '', { status: 'disabled' });
    await world.redeliver(delivery);
    world.answer = async () => answered(410);
    await world.attempt();
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'skipped', attempt_count: 1 });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'requested' });
  });

  test.for(['enabled', 'disabled'])(
    'follows at once, if it is requested during an attempt that fails, of a subscription that is %s by then',
    async (status, { world }) => {
      const delivery = await world.ping();
      world.answer = async () => {
        if (world.sent.length > 1) return await succeeding('');
        await world.call('PATCH', '', { status });
        await world.redeliver(delivery);
        return await failing('');
      };
      await world.deliver();
      expect(await world.readDelivery(delivery)).toMatchObject({
        status: 'succeeded',
        attempts: [{ outcome: 'failed' }, { outcome: 'succeeded' }],
      });
    },
  );

  test('of a delivery that waits for its retry is sent by the lane at once', async ({ world }) => {
    const delivery = await world.ping();
    world.answer = failing;
    await world.attempt();
    world.answer = succeeding;
    await world.redeliver(delivery);
    await world.deliver();
    expect(await world.readDelivery(delivery)).toMatchObject({ status: 'succeeded', attempt_count: 2 });
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
    world.answer = async () => ({ ...answered(status), retryAfter });
    const delivery = await world.ping();
    world.nowMs = Date.now() + 1_000;
    await world.attempt();
    const { next_attempt_at, attempts } = await world.readDelivery(delivery);
    const [{ at, duration_ms }] = attempts;
    expect(Date.parse(next_attempt_at) - Date.parse(at) - duration_ms).toBe(waitMs);
  });

  test('410 to a first attempt wakes the workflow, which ends what waits for a retry', async ({ world }) => {
    await world.ping();
    world.answer = async () => answered(410);
    await world.deliver();
    expect(await world.messages()).toEqual([{ signal: 'retriesAdded' }]);
  });

  test('410 disables the subscription, skips pending deliveries, its own as well, and ends its replay', async ({
    world,
  }) => {
    await world.burst(20);
    const { replay_id: id } = jsonOf(await world.call('POST', '/replay', ALWAYS));
    // Not asked for, so that none is sent to a disabled subscription.
    world.answer = async () => answered(410);
    await world.deliver();
    expect(await world.round()).toMatchObject({ waitMs: null, found: { status: 'disabled', disabledReason: 'gone' } });
    expect(await world.read()).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    const statuses = await world.rowsOf(
      'SELECT DISTINCT status FROM webhook_deliveries WHERE webhook_id = $1',
      world.webhook.webhook_id,
    );
    expect(statuses).toEqual([{ status: 'skipped' }]);
    expect(jsonOf(await world.call('GET', `/replays/${id}`))).toMatchObject({ status: 'canceled', sent: 0 });
    // Some more may be under way by then.
    expect(world.sent.length).toBeLessThan(20);
  });

  test.for(['deliver', 'attempt'] as const)(
    'of an earlier URL changes nothing of the subscription, and is retried at the new one (by %s)',
    async (send, { world }) => {
      const delivery = await world.ping();
      world.answer = async () => {
        await world.call('PATCH', '', { url: 'http://127.0.0.1:9998/moved' });
        return answered(410);
      };
      await world[send]();
      expect(await world.read()).toMatchObject({ status: 'enabled', disabled_reason: null });
      const { webhook_id: id } = world.webhook;
      expect(await world.rowsOf('SELECT failing_since FROM webhooks WHERE webhook_id = $1', id)).toEqual([
        { failing_since: null },
      ]);
      expect(await world.readDelivery(delivery)).toMatchObject({
        status: 'pending',
        attempts: [{ number: 1, outcome: 'failed', response_status: 410 }],
      });
      world.answer = succeeding;
      await world.makeDue();
      await world[send]();
      expect(world.sent.map(({ url }) => url)).toEqual([world.webhook.url, 'http://127.0.0.1:9998/moved']);
    },
  );

  type Course = { readonly answer?: Answer; readonly changes?: readonly object[]; readonly pauseMs?: number };
  const ENABLED = { status: 'enabled', disabled_reason: null };
  const DISABLED = { status: 'disabled', disabled_reason: 'failing' };

  test.for<[string, Course, object]>([
    ['disables the subscription, whichever deliveries failed', {}, DISABLED],
    ['disables nothing after a day without an attempt', { pauseMs: 1.1 * DAY_MS }, ENABLED],
    ['disables nothing after a success', { answer: succeeding }, ENABLED],
    [
      'disables the subscription, also when it was given the same address and status again',
      { changes: [{ url: 'http://127.0.0.1:9999/hook', status: 'enabled' }, { description: 'renamed' }] },
      DISABLED,
    ],
    ['disables nothing at another address', { changes: [{ url: 'https://other.example/hook' }] }, ENABLED],
    [
      'disables nothing once it was enabled again',
      { changes: [{ status: 'disabled' }, { status: 'enabled' }] },
      ENABLED,
    ],
  ])('five days after the first one %s', async ([_case, { answer, changes = [], pauseMs = 0 }, found], { world }) => {
    const attemptAt = async (ms: number, answered = failing) => {
      world.nowMs = ms;
      world.answer = answered;
      const delivery = await world.ping();
      await world.attempt();
      return delivery;
    };
    const startMs = world.nowMs;
    for (const days of [0, 0.9, 1.8, 2.7, 3.6, 4.5]) await attemptAt(startMs + days * DAY_MS);
    expect(await world.read()).toMatchObject(ENABLED);
    if (answer) await attemptAt(world.nowMs, answer);
    for (const change of changes) await world.call('PATCH', '', change);
    const last = await attemptAt(startMs + 5.1 * DAY_MS + pauseMs);
    expect(await world.read()).toMatchObject(found);
    expect((await world.readDelivery(last)).status).toBe(found === DISABLED ? 'skipped' : 'pending');
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
    expect(signWebhook([secret], content)).toBe('v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=');
  });

  test('use each earlier secret for 24 hours after its own rotation, the newest secret first', async ({
    api,
    world,
  }) => {
    const rotate = async (): Promise<string> => jsonOf(await world.call('POST', '/rotate-secret')).secret;
    const secrets: string[] = [world.webhook.secret];
    for (let n = 0; n < 3; n += 1) secrets.unshift(await rotate());
    const at = Date.now() - 2.5 * HOUR_MS;
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
      await world.attempt();
    }
    const verify = (secret: string, { body, headers }: Sent, signature: string) =>
      new StandardWebhook(secret).verify(body.toString(), { ...headers, 'webhook-signature': signature });
    for (const [place, request] of world.sent.entries()) {
      const signatures = request.headers['webhook-signature']?.split(' ') ?? [];
      expect(signatures).toHaveLength(4 - place);
      for (const [nth, signature] of signatures.entries())
        expect(verify(secrets[nth] ?? '', request, signature)).toMatchObject({ type: 'webhook.ping' });
    }
    const expire = () => deleteExpiredSecrets(api.connection.db);
    expect([await expire(), await expire()]).toEqual([2, 0]);
    expect(
      await world.rowsOf('SELECT 1 FROM webhook_earlier_secrets WHERE webhook_id = $1', world.webhook.webhook_id),
    ).toHaveLength(1);
  });
});
