/** What an organization used (contract §14). */
import { describe, expect } from 'vitest';
import { withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf, settle } from '../support/partner.ts';
import { MINUTE_ENDS } from '../support/patience.ts';
import { faultsOf } from '../support/refusal.ts';
import { enterStates } from '../support/settlement.ts';
import { complete, openVerification } from '../support/verification.ts';
import { ping, subscribe } from '../support/webhook.ts';

const test = withApi();

describe('GET /v1/usage', MINUTE_ENDS, () => {
  test.for([
    [
      '',
      [
        ['query.from', 'missing'],
        ['query.to', 'missing'],
      ],
    ],
    ['?from=2026-11-21&to=2026-11-20', [['query.to', 'value_error']]],
    ['?from=2026-01-01&to=2026-04-03', [['query.to', 'value_error']]],
    ['?from=1969-12-31&to=1970-01-01', [['query.from', 'value_error']]],
    ['?from=2026-02-30&to=2026-03-01', [['query.from', 'value_error']]],
    ['?from=21.11.2026&to=2026-11-21', [['query.from', 'string_pattern_mismatch']]],
  ] as const)('422 for %s', async ([query, faults], { api, partner }) => {
    const answer = await api.call(partner, 'GET', `/v1/usage${query}`);
    expect([answer.statusCode, faultsOf(answer)]).toEqual([422, faults]);
  });

  test.for(['1970-01-01', '9999-12-31'])('200 for %s, one end of all days', async (date, { api, partner }) => {
    const answer = await api.call(partner, 'GET', `/v1/usage?from=${date}&to=${date}`);
    expect([answer.statusCode, jsonOf(answer)]).toMatchObject([200, { days: [{ date, created: { recipients: 0 } }] }]);
  });

  test('200 with null for the deliveries of a day of which some are deleted by now, and counts from then on', async ({
    api,
    clock,
  }) => {
    clock.stop(new Date('2026-11-22T08:00:00.000Z'));
    const caller = await api.createCaller('read');
    // They are kept for 90 days.
    const { days } = jsonOf(await api.call(caller, 'GET', '/v1/usage?from=2026-08-23&to=2026-08-25'));
    expect(days).toMatchObject([
      { date: '2026-08-23', deliveries: null, settlements: { accepted: 0 } },
      { date: '2026-08-24', deliveries: null },
      { date: '2026-08-25', deliveries: { pending: 0, succeeded: 0 } },
    ]);
  });

  test('200 with null for the deliveries of a day that were deleted before the service kept them for longer', async ({
    newApi,
  }) => {
    const api = await newApi({ config: { retentionDays: { events: 365, quotes: 90 } } });
    const caller = await api.createCaller();
    const { webhook_id: id } = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
    await ping(api, caller, id);
    const nowMs = Date.now();
    const ago = (days: number) => new Date(nowMs - days * 86_400_000).toISOString();
    await api.owner.pool.query(
      `UPDATE webhook_deliveries SET status = 'succeeded', next_attempt_at = NULL, lane_key = NULL, created_at = $1`,
      [ago(100)],
    );
    const [from, to] = [ago(101), ago(99)].map((at) => at.slice(0, 10));
    const { days } = jsonOf(await api.call(caller, 'GET', `/v1/usage?from=${from}&to=${to}`));
    expect(days).toMatchObject([{ deliveries: null }, { deliveries: null }, { deliveries: { succeeded: 0 } }]);
  });

  test('200 with the status that the list of deliveries shows, and without deleted subscriptions', async ({ api }) => {
    const caller = await api.createCaller();
    const { webhook_id: id } = await subscribe(api, caller, 'http://127.0.0.1:9999/hook');
    await ping(api, caller, id);
    const today = new Date().toISOString().slice(0, 10);
    const read = async () => jsonOf(await api.call(caller, 'GET', `/v1/usage?from=${today}&to=${today}`)).days[0];
    expect(await read()).toMatchObject({ deliveries: { pending: 1, skipped: 0 }, created: { webhooks: 1 } });
    await api.call(caller, 'PATCH', `/v1/webhooks/${id}`, { status: 'disabled' });
    expect((await read()).deliveries).toMatchObject({ pending: 0, skipped: 1 });
    await api.call(caller, 'DELETE', `/v1/webhooks/${id}`);
    const none = { pending: 0, succeeded: 0, exhausted: 0, skipped: 0, canceled: 0 };
    expect(await read()).toMatchObject({ deliveries: none, created: { webhooks: 0 } });
  });

  test('200 with every day of the period, and each record on the day on which it began', async ({ api, clock }) => {
    clock.stop(new Date('2026-11-21T23:59:59.000Z'));
    const caller = await api.createCaller();
    const recipientId = await createRecipient(api, caller);
    await subscribe(api, caller, 'https://hooks.partner.example/');
    const settled = await settle(api, caller, { recipient_id: recipientId });
    await settle(api, caller, { recipient_id: recipientId });
    clock.stop(new Date('2026-11-22T00:00:00.000Z'));
    await enterStates(api, caller, settled, ['awaiting_funds', 'funded', 'paying_out', 'settled']);
    const { verification_id: id } = await openVerification(api, caller, recipientId);
    await complete(api, caller, id, { status: 'verified' });
    const other = await api.createCaller('read');
    const read = async (as: typeof caller) =>
      jsonOf(await api.call(as, 'GET', '/v1/usage?from=2026-11-20&to=2026-11-22'));
    const { days } = await read(caller);
    expect(days.map(({ date }: { date: string }) => date)).toEqual(['2026-11-20', '2026-11-21', '2026-11-22']);
    expect(days[0]).toMatchObject({ settlements: { accepted: 0, settled: 0 }, volume: [], created: { recipients: 0 } });
    expect(days[1]).toMatchObject({
      settlements: { accepted: 1, settled: 1, failed: 0 },
      volume: [{ currency: 'USD', amount: '250.00' }],
      created: { recipients: 1, webhooks: 1, api_keys: 1, wallets: 0 },
    });
    // A delivery begins by the database's clock.
    const today = new Date().toISOString().slice(0, 10);
    const [now] = jsonOf(await api.call(caller, 'GET', `/v1/usage?from=${today}&to=${today}`)).days;
    expect(now.deliveries.pending).toBeGreaterThanOrEqual(2);
    expect(days[2]).toMatchObject({ settlements: { accepted: 0 }, verifications: { verified: 1, pending: 0 } });
    expect((await read(other)).days[1]).toMatchObject({
      settlements: { accepted: 0, settled: 0 },
      created: { recipients: 0 },
    });
  });
});
