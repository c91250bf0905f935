/**
 * The time of one object never runs back, although the clocks of the processes differ and a repeated step has the time
 * of its first try: no date is before the one that it follows, and no event is dated before its predecessor.
 */
import { describe, expect, onTestFinished, vi } from 'vitest';
import { webhookSubscriptionActivities } from '../../activities/webhook-subscription.ts';
import { createIds } from '../../db/id.ts';
import { activityDeps } from '../support/activity.ts';
import type { TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf } from '../support/partner.ts';
import { BY_WIRE } from '../support/settlement.ts';
import { complete, openVerification, statusOf } from '../support/verification.ts';
import { ping, readDelivery, subscribe } from '../support/webhook.ts';

const SKEW_MS = 10 * 60_000;

const test = withApi();

/** The times in the bodies of an object's events, in the order of their sequence. */
async function eventTimes(api: TestApi, objectId: string): Promise<string[]> {
  const { rows } = await api.connection.pool.query<{ body: Buffer }>(
    'SELECT body FROM events WHERE object_id = $1 ORDER BY sequence',
    [objectId],
  );
  return rows.map(({ body }) => JSON.parse(body.toString()).timestamp);
}

function expectInOrder(times: readonly (string | null | undefined)[], count: number): void {
  const known = times.map((time) => time ?? '');
  expect(known).toHaveLength(count);
  expect(known).toEqual(known.toSorted());
  expect(known).not.toContain('');
}

describe("a recipient's dates, when the clock of the second process is behind", () => {
  test('increase with a change and the deactivation, as in its event', async ({ api, partner, clock }) => {
    const id = await createRecipient(api, partner);
    clock.advance(-SKEW_MS);
    const change = { email: 'new@example.com' };
    const changed = jsonOf(await api.call(partner, 'PUT', `/v1/recipients/${id}`, change));
    const inactive = jsonOf(await api.call(partner, 'DELETE', `/v1/recipients/${id}`));
    const [event] = await eventTimes(api, id);
    expectInOrder([changed.created_at, changed.updated_at, inactive.updated_at, event], 4);
  });
});

describe("a verification's dates, when the clock of the second process is behind", () => {
  test('increase with a decision by the partner, as those of the recipient that it changes', async ({
    api,
    partner,
    clock,
  }) => {
    const recipientId = await createRecipient(api, partner);
    clock.advance(SKEW_MS);
    const { verification_id: id } = await openVerification(api, partner, recipientId);
    const pending = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${recipientId}`));
    clock.advance(-SKEW_MS);
    const decided = jsonOf(await complete(api, partner, id, { status: 'verified' }));
    const verified = jsonOf(await api.call(partner, 'GET', `/v1/recipients/${recipientId}`));
    expectInOrder([decided.created_at, decided.decided_at], 2);
    expectInOrder([pending.updated_at, verified.updated_at], 2);
    expectInOrder(await eventTimes(api, id), 2);
  });

  test('increase with the next verification, which is the latest', async ({ api, partner, clock }) => {
    const recipientId = await createRecipient(api, partner);
    const first = await openVerification(api, partner, recipientId);
    await complete(api, partner, first.verification_id, { status: 'rejected', rejection_reason: 'forgery' });
    clock.advance(-SKEW_MS);
    const second = await openVerification(api, partner, recipientId);
    const { latest } = await statusOf(api, partner, recipientId);
    expect(latest.verification_id).toBe(second.verification_id);
  });
});

describe("a subscription's dates, when the clock of the second process is behind", () => {
  test('increase with changes, a rotation and pings', async ({ api, partner, clock }) => {
    const { webhook_id: id, updated_at: created } = await subscribe(api, partner, 'http://127.0.0.1:9999/hook');
    await ping(api, partner, id);
    clock.advance(-SKEW_MS);
    await ping(api, partner, id);
    const change = { description: 'renamed' };
    const changed = jsonOf(await api.call(partner, 'PATCH', `/v1/webhooks/${id}`, change));
    const rotated = jsonOf(await api.call(partner, 'POST', `/v1/webhooks/${id}/rotate-secret`));
    expectInOrder([created, changed.updated_at, rotated.updated_at], 3);
    expectInOrder(await eventTimes(api, id), 2);
  });

  test('increase with the attempts of a delivery', async ({ api, partner }) => {
    const { webhook_id: webhookId } = await subscribe(api, partner, 'http://127.0.0.1:9999/hook', ['webhook.ping']);
    const delivery = await ping(api, partner, webhookId);
    const activities = webhookSubscriptionActivities({
      ...activityDeps(api),
      guardedHttp: {
        post: async () => ({
          status: 500,
          error: 'http_status',
          bytes: 0,
          sha256: Buffer.alloc(32),
          retryAfter: undefined,
          durationMs: 1,
          lostMs: null,
        }),
      },
    });
    const redeliver = () =>
      api.call(partner, 'POST', `/v1/webhooks/${webhookId}/deliveries/${delivery.delivery_id}/redeliver`);
    for (const nowMs of [Date.now() - SKEW_MS, Date.now() + SKEW_MS, Date.now()]) {
      await redeliver();
      await api.connection.pool.query('UPDATE webhook_deliveries SET lane_key = NULL WHERE webhook_id = $1', [
        webhookId,
      ]);
      await activities.deliverRetries({ webhookId, orgId: partner.orgId, nowMs });
    }
    const { created_at: created, attempts } = await readDelivery(api, partner, delivery);
    expectInOrder([created, ...attempts.map(({ at }: { at: string }) => at)], 4);
  });
});

describe("a key's dates, when the clock of the second process is behind", () => {
  test('increase with its revocation and its use', async ({ api, clock }) => {
    const caller = await api.createCaller();
    clock.advance(SKEW_MS);
    const body = { name: 'second', scope: 'read' };
    const second = jsonOf(await api.call(caller, 'POST', `/v1/orgs/${caller.orgId}/keys`, body));
    clock.advance(-SKEW_MS);
    const rotated = jsonOf(await api.call(caller, 'POST', `/v1/orgs/keys/${second.key_id}/rotate`));
    const revoked = jsonOf(await api.call(caller, 'DELETE', `/v1/orgs/keys/${rotated.key_id}`));
    expectInOrder([second.created_at, rotated.created_at, revoked.revoked_at], 3);
  });
});

test("a settlement's exceptions are read in the order of its events, when the clock of the second process is behind", async ({
  api,
  partner,
  steps,
  clock,
}) => {
  const id = await steps.waiting(BY_WIRE);
  await api.call(partner, 'POST', `/v2/settle/${id}/cancel`);
  const realNow = Date.now;
  const ofFirstProcess = vi.spyOn(Date, 'now').mockImplementation(() => realNow() + SKEW_MS);
  onTestFinished(() => ofFirstProcess.mockRestore());
  clock.advance(SKEW_MS);
  await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 100 }));
  ofFirstProcess.mockRestore();
  clock.advance(-SKEW_MS);
  await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 200 }));
  const { exceptions } = await steps.read(id);
  expect(exceptions.map(({ amount }: Json) => amount)).toEqual(['1.00', '2.00']);
  const events: Json[] = jsonOf(await api.call(partner, 'GET', `/v1/events?object_id=${id}`));
  const last = events.toSorted((one, other) => other.sequence - one.sequence)[0];
  expect(last).toMatchObject({ type: 'settlement.exception', data: { exceptions } });
  expectInOrder(await eventTimes(api, id), events.length);
});

test('ids of a process keep their order when its clock is set back a little, and follow a clock that was far ahead', () => {
  const nowMs = Date.parse('2026-11-27T08:00:00.000Z');
  const readings = [nowMs, nowMs, nowMs - 30_000, nowMs + 1, nowMs + 366 * 86_400_000, nowMs + 2, nowMs + 2];
  const newId = createIds(() => readings.shift() ?? 0);
  const [ahead, back] = [Array.from({ length: 5 }, newId), Array.from({ length: 2 }, newId)];
  for (const ids of [ahead, back]) expect(ids).toEqual(ids.toSorted());
  const timeOf = (id: string | undefined) => Number.parseInt((id ?? '').replace('-', '').slice(0, 12), 16);
  expect(back.map(timeOf)).toEqual([nowMs + 2, nowMs + 2]);
});
