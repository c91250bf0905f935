/** POST /v1/webhooks/{webhook_id}/replay: what a subscription missed is sent again (contract §11). */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { recordFirstEvent } from '../../db/queries/event.ts';
import type { EventType } from '../../domain/event.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { raceBehind } from '../support/database.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';

/** `missed`: a disabled subscription with four skipped deliveries, oldest first. */
const test = withApi().extend('missed', ({ api }) => createMissed(api));

const TYPES: readonly EventType[] = [
  'settlement.accepted',
  'settlement.funded',
  'settlement.settled',
  'settlement.settled',
];

async function createMissed(api: TestApi) {
  const caller = await api.createCaller('full');
  const created = await api.call(caller, 'POST', '/v1/webhooks', {
    url: 'https://hooks.partner.example/',
    event_types: ['*'],
  });
  const webhookId: string = jsonOf(created).webhook_id;
  await api.call(caller, 'PATCH', `/v1/webhooks/${webhookId}`, { status: 'disabled' });
  for (const type of TYPES) await record(api, caller, type);
  const deliveries = async (): Promise<Json[]> =>
    jsonOf(await api.call(caller, 'GET', `/v1/webhooks/${webhookId}/deliveries?limit=100`)).reverse();
  const replay = (body: Json, headers: Record<string, string> = {}, as = caller) =>
    api.call(as, 'POST', `/v1/webhooks/${webhookId}/replay`, body, headers);
  const statuses = async () => (await deliveries()).map(({ status }) => status);
  return { caller, webhookId, deliveries, replay, statuses };
}

const record = (api: TestApi, { orgId }: Caller, type: EventType): Promise<string> =>
  api.connection.db.transaction((tx) =>
    recordFirstEvent(tx, {
      orgId,
      objectType: 'settlement',
      objectId: `stl_${newId()}`,
      type,
      data: {},
      at: new Date(),
      requestId: 'test',
    }),
  );

const ALWAYS = { since: '2020-01-01T00:00:00Z' };

describe('a replay', () => {
  test('202 with how many deliveries become due again, and one outbox row for all of them', async ({ api, missed }) => {
    const answer = await missed.replay(ALWAYS);
    expect([answer.statusCode, jsonOf(answer)]).toEqual([202, { replay_id: expect.any(String), deliveries: 4 }]);
    expect(await missed.statuses()).toEqual(['pending', 'pending', 'pending', 'pending']);
    const { rows } = await api.connection.pool.query(
      `SELECT count(*)::int AS count FROM outbox WHERE kind = 'webhook_subscription' AND object_id = $1`,
      [missed.webhookId],
    );
    expect(rows).toEqual([{ count: 1 }]);
  });

  test('202 for these event types and this time only', async ({ missed }) => {
    const [, second, , fourth] = await missed.deliveries();
    const body = { since: second?.created_at, until: fourth?.created_at, event_types: ['settlement.settled'] };
    const expected = (await missed.deliveries()).filter(
      ({ event_type: type, created_at: at }) =>
        type === 'settlement.settled' && at >= body.since && at < (body.until ?? ''),
    );
    expect(jsonOf(await missed.replay(body)).deliveries).toBe(expected.length);
    const replayed = (await missed.deliveries()).filter(({ status }) => status === 'pending');
    expect(replayed.map(({ delivery_id: id }) => id)).toEqual(expected.map(({ delivery_id: id }) => id));
  });

  test('leaves what succeeded alone, unless it is asked for', async ({ api, missed }) => {
    await api.connection.pool.query(
      `UPDATE webhook_deliveries SET status = 'succeeded', lane_key = NULL WHERE webhook_id = $1`,
      [missed.webhookId],
    );
    expect(jsonOf(await missed.replay(ALWAYS)).deliveries).toBe(0);
    expect(jsonOf(await missed.replay({ ...ALWAYS, statuses: ['succeeded'] })).deliveries).toBe(4);
  });

  test('writes no outbox row if nothing matches', async ({ api, missed }) => {
    await expectRefused(api, () => missed.replay({ since: '2999-01-01T00:00:00Z' }), 202, { deliveries: 0 });
  });

  test('202 once for one idempotency key, and the same answer again', async ({ missed }) => {
    const key = { 'idempotency-key': newId() };
    const [first, again] = [await missed.replay(ALWAYS, key), await missed.replay(ALWAYS, key)];
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([202, first.body, 'true']);
    expect(jsonOf(first).deliveries).toBe(4);
  });
});

describe('a redelivery', () => {
  test('202 for a delivery whose last result is recorded at the same moment', async ({ api, missed }) => {
    const [delivery] = await missed.deliveries();
    const url = `/v1/webhooks/${missed.webhookId}/deliveries/${delivery?.delivery_id}/redeliver`;
    expect((await api.call(missed.caller, 'POST', url)).statusCode).toBe(202);
    const [answer] = await raceBehind(
      api.connection.pool,
      {
        hold: (holder) =>
          holder.query(
            `UPDATE webhook_deliveries SET status = 'succeeded', next_attempt_at = NULL, lane_key = NULL WHERE delivery_id = $1`,
            [delivery?.delivery_id],
          ),
      },
      [() => api.call(missed.caller, 'POST', url)],
    );
    expect([answer?.statusCode, answer?.body]).toEqual([202, answer?.body]);
    expect((await missed.statuses())[0]).toBe('pending');
  });

  test('202 once for one idempotency key; 409 for the same key with another delivery', async ({ api, missed }) => {
    const [first, second] = await missed.deliveries();
    const key = { 'idempotency-key': newId() };
    const redeliver = (id: string) =>
      api.call(missed.caller, 'POST', `/v1/webhooks/${missed.webhookId}/deliveries/${id}/redeliver`, undefined, key);
    const answers = [await redeliver(first?.delivery_id), await redeliver(first?.delivery_id)];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202]);
    expect(answers[1]?.body).toBe(answers[0]?.body);
    const other = await redeliver(second?.delivery_id);
    expect([other.statusCode, jsonOf(other).code]).toEqual([409, 'idempotency_key_reused']);
    expect(await missed.statuses()).toEqual(['pending', 'skipped', 'skipped', 'skipped']);
  });
});
