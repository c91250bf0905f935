/** From the moment that a call to the rail may have gone out, unknown is not failed (contract §6). */
import { MockActivityEnvironment } from '@temporalio/testing';
import { describe, expect } from 'vitest';
import { settlementActivities } from '../../activities/settlement.ts';
import { listOpenSettlements } from '../../db/queries/operator/waiting.ts';
import { activityDeps } from '../support/activity.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { BY_WIRE } from '../support/settlement.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

const test = withApi().extend('world', FILE, ({ api, partner, steps }) => ({
  /** A settlement whose money is there; its payout gets no answer. */
  funded: async (): Promise<string> => {
    const id = await steps.waiting(BY_WIRE, { name: 'PAYOUT PENDING' });
    await sendBankledger(api, bankledgerBody(id));
    return id;
  },
  deactivate: async (id: string): Promise<void> => {
    const { recipientId } = await steps.stored(id);
    await api.call(partner, 'DELETE', `/v1/recipients/${recipientId}`);
  },
}));

describe('a payout under way', () => {
  test("is not failed by a deactivation, whatever is repeated, and the rail's answer settles it", async ({
    world,
    steps,
  }) => {
    const id = await world.funded();
    await steps.activities.sendPayout(steps.step(id));
    await world.deactivate(id);
    for (const repeat of [
      steps.activities.admitSettlement,
      steps.activities.sendPayout,
      steps.activities.reviewSettlement,
    ])
      expect(await repeat(steps.step(id))).toMatchObject({ status: 'paying_out', failureCode: null });
    await steps.answerPayout(id, 'payout_confirmed');
    expect(await steps.activities.reviewSettlement(steps.step(id))).toMatchObject({ status: 'settled' });
  });

  test('comes into review when its call is repeated through the end of the wait', async ({
    world,
    api,
    partner,
    steps,
  }) => {
    const id = await world.funded();
    await steps.activities.sendPayout(steps.step(id));
    const { sendPayout } = settlementActivities(activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }));
    const attempt = (lateMs: number) =>
      new MockActivityEnvironment({
        scheduledTimestampMs: 0,
        currentAttemptScheduledTimestampMs: lateMs,
      }).run(sendPayout, { settlementId: id, orgId: partner.orgId, nowMs: Date.now() });
    expect(await attempt(3 * DAY_MS - MINUTE_MS)).toMatchObject({ status: 'paying_out' });
    expect(await attempt(3 * DAY_MS + MINUTE_MS)).toMatchObject({ status: 'needs_review' });
  });
});

describe('a wrong clock of another process', () => {
  test("does not end a wait: the workflow's time alone judges it", async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    const { now } = api.deps;
    Object.assign(api.deps, { now: () => new Date(Date.now() + 11 * DAY_MS) });
    await sendBankledger(api, bankledgerBody(id, { amount_reconciled: 100 }, 'partially_reconciled'));
    Object.assign(api.deps, { now });
    expect(await steps.activities.reviewSettlement(steps.step(id))).toMatchObject({ status: 'awaiting_funds' });
    const { timeline } = await steps.read(id);
    const dates = timeline.map(({ at }: Json) => at);
    expect(dates).toEqual([...dates].sort());
  });

  test('does not hide a settlement from the sweep', async ({ api, steps }) => {
    const { now } = api.deps;
    Object.assign(api.deps, { now: () => new Date(Date.now() + DAY_MS) });
    const id = await steps.accept();
    Object.assign(api.deps, { now });
    const recent = { since: new Date(Date.now() - 15_000), until: new Date() };
    const open = await listOpenSettlements(api.connection.db, { after: '', limit: 1_000, recent }, 'test');
    expect(open.map(({ message }) => message.objectId)).toContain(id);
  });
});
