import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { claimOutbox } from '../../db/queries/outbox.ts';
import { outbox } from '../../db/schema/index.ts';
import { workflowStartOf } from '../../process/workflow-start.ts';
import type { Caller } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';
import { BY_MANUAL_CARD, BY_WIRE } from '../support/settlement.ts';

const DAY_MS = 86_400_000;

const test = withApi().extend(
  'helper',
  FILE,
  ({ api, partner }) =>
    (id: string, verb: 'events' | 'advance', body?: unknown, by: Caller = partner) =>
      api.call(by, 'POST', `/v2/test-helpers/settlements/${id}/${verb}`, body),
);

describe('sending an event', () => {
  test('422 for an event that the provider cannot send', async ({ api, steps, helper }) => {
    const wire = await steps.waiting(BY_WIRE);
    const problem = await expectRefused(api, () => helper(wire, 'events', { event: 'dispute_opened' }), 422);
    expect(problem.detail).toMatchObject([{ loc: ['body', 'event'], type: 'value_error' }]);
    const funded = await steps.acceptInternal();
    await expectRefused(api, () => helper(funded, 'events', { event: 'collection_succeeded' }), 422);
  });

  test.for([
    ['an amount of an event without one', { event: 'collection_failed', amount: '1.00' }],
    ['an amount of 0', { event: 'collection_succeeded', amount: '0' }],
    ['an amount above the bound', { event: 'dispute_opened', amount: '100000.01' }],
    ['an amount with too many digits', { event: 'collection_partial', amount: '1.001' }],
  ] as const)('422 for %s, also of an unknown settlement', async ([_case, body], { api, steps, helper }) => {
    for (const id of [await steps.accept(BY_MANUAL_CARD), 'stl_unknown']) {
      const { detail } = await expectRefused(api, () => helper(id, 'events', body), 422);
      expect(detail).toMatchObject([{ loc: ['body', 'amount'], type: 'value_error' }]);
    }
  });

  test('202 with one command and one workflow for each request, with only ids and money', async ({
    api,
    partner,
    steps,
    helper,
  }) => {
    const id = await steps.waiting(BY_WIRE);
    const answers = [
      await helper(id, 'events', { event: 'collection_partial', amount: '100' }),
      await helper(id, 'events', { event: 'collection_partial', amount: '100' }),
    ];
    const commands = answers.map((answer) => jsonOf(answer));
    expect(commands[0]).toEqual({
      command_id: expect.any(String),
      settlement_id: id,
      event: 'collection_partial',
      amount: '100.00',
      currency: 'USD',
      environment: 'local sandbox',
      simulation: true,
    });
    const rows = await claimOutbox(api.connection.db, 1_000);
    const starts = rows
      .filter((row) => row.kind === 'sandbox_event' && row.context.settlementId === id)
      .map((message) => workflowStartOf(message));
    expect(starts.map((start) => start.options.workflowId)).toEqual(
      commands.map(({ command_id }) => `sandbox-event:${command_id}`),
    );
    expect(starts[0]?.options.args).toEqual([
      {
        commandId: commands[0].command_id,
        orgId: partner.orgId,
        settlementId: id,
        event: 'collection_partial',
        amountMinor: '10000',
      },
    ]);
  });

  test('202 without an amount sends the missing money, less what is received and what is requested', async ({
    api,
    steps,
    helper,
  }) => {
    const id = await steps.waiting(BY_WIRE);
    const part = bankledgerBody(id, { amount_reconciled: 5_000 }, 'partially_reconciled');
    await sendBankledger(api, part);
    const sent = jsonOf(await helper(id, 'events', { event: 'collection_partial' }));
    expect(sent.amount).toBe('100.00');
    expect(jsonOf(await helper(id, 'events', { event: 'collection_failed' })).amount).toBeNull();
    const missing = async (): Promise<string> =>
      jsonOf(await helper(id, 'events', { event: 'collection_partial' })).amount;
    expect(await missing()).toBe('50.00');
    // Written out: workers of the released version send the same id.
    const arrived = { ...part, id: `evt_${sent.command_id}` };
    await sendBankledger(api, { ...arrived, data: { ...part.data, amount_reconciled: 10_000 } });
    expect(await missing()).toBe('25.00');
  });

  test('202 for a dispute, which is no money under way: a collection after it still sends all of it', async ({
    steps,
    helper,
  }) => {
    const id = await steps.accept(BY_MANUAL_CARD);
    const amountOf = async (body: object) => jsonOf(await helper(id, 'events', body)).amount;
    expect(await amountOf({ event: 'dispute_opened', amount: '100' })).toBe('100.00');
    expect(await amountOf({ event: 'collection_succeeded' })).toBe('250.00');
  });
});

describe('advancing the clock', () => {
  test('409 without a duration when nothing is waited for, and after a terminal state', async ({
    api,
    partner,
    steps,
    helper,
  }) => {
    const accepted = await steps.accept(BY_MANUAL_CARD);
    expect(await expectRefused(api, () => helper(accepted, 'advance'), 409)).toMatchObject({
      code: 'state_conflict',
      current_state: 'accepted',
    });
    const reviewed = await steps.inReview();
    await expectRefused(api, () => helper(reviewed, 'advance', {}), 409);
    const canceled = await steps.waiting(BY_MANUAL_CARD);
    await api.call(partner, 'POST', `/v2/settle/${canceled}/cancel`);
    for (const body of [undefined, { by: 'P1D' }])
      await expectRefused(api, () => helper(canceled, 'advance', body), 409);
  });

  test('202 to the end of the wait by default, and signals the workflow', async ({ api, steps, helper }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    const answer = await helper(id, 'advance');
    const { expiresAt } = await steps.stored(id);
    expect([answer.statusCode, jsonOf(answer)]).toEqual([
      202,
      {
        settlement_id: id,
        status: 'awaiting_funds',
        now: expiresAt?.toISOString(),
        expires_at: expiresAt?.toISOString(),
        environment: 'local sandbox',
        simulation: true,
      },
    ]);
    const dispatched = await api.connection.db.select().from(outbox).where(eq(outbox.objectId, id));
    expect(dispatched.map((row) => row.signal)).toContain('clockAdvanced');
    expect((await steps.activities.reviewSettlement(steps.step(id))).status).toBe('expired');
  });

  test('moves only this settlement, adds up, and never moves back', async ({ steps, helper }) => {
    const [id, other] = [await steps.waiting(BY_WIRE), await steps.waiting(BY_WIRE)];
    for (const by of ['P9DT23H', 'PT59M']) expect((await helper(id, 'advance', { by })).statusCode).toBe(202);
    expect((await steps.stored(id)).clockOffsetMs).toBe(10 * DAY_MS - 60_000);
    expect((await steps.stored(other)).clockOffsetMs).toBe(0);
    const { expiresAt } = await steps.stored(id);
    const leftMs = (expiresAt?.getTime() ?? 0) - Date.now() - (10 * DAY_MS - 60_000);
    expect(leftMs).toBeGreaterThan(0);
    expect((await steps.activities.reviewSettlement(steps.step(id))).status).toBe('awaiting_funds');
    // A review at the end of the wait finds it over; another advance adds nothing.
    for (const _again of [1, 2]) expect((await helper(id, 'advance')).statusCode).toBe(202);
    expect((await steps.stored(id)).clockOffsetMs).toBeLessThanOrEqual(10 * DAY_MS);
    expect((await steps.activities.reviewSettlement(steps.step(id))).status).toBe('expired');
    expect((await steps.activities.reviewSettlement(steps.step(other))).status).toBe('awaiting_funds');
  });

  test('409 beyond a hundred years: no date of one settlement is out of the range that a sweep of all reads', async ({
    api,
    steps,
    helper,
  }) => {
    const id = await steps.inReview();
    const setOffset = (days: number) =>
      api.owner.pool.query('UPDATE settlements SET clock_offset_ms = $2 WHERE settlement_id = $1', [id, days * DAY_MS]);
    await setOffset(36_524);
    await expectRefused(api, () => helper(id, 'advance', { by: 'P1DT1S' }), 409);
    expect((await helper(id, 'advance', { by: 'P1D' })).statusCode).toBe(202);
  });

  test('fifty at once: each counts', async ({ steps, helper }) => {
    const id = await steps.waiting(BY_WIRE);
    const answers = await Promise.all(Array.from({ length: 50 }, () => helper(id, 'advance', { by: 'PT1M' })));
    expect(new Set(answers.map((answer) => answer.statusCode))).toEqual(new Set([202]));
    expect((await steps.stored(id)).clockOffsetMs).toBe(50 * 60_000);
  });
});
