/** From the moment that a call to the rail may have gone out, unknown is not failed (contract §6). */
import { MockActivityEnvironment } from '@temporalio/testing';
import { describe, expect } from 'vitest';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { settlementActivities } from '../../activities/settlement.ts';
import { requestResolution } from '../../db/commands/review.ts';
import { listOpenSettlements } from '../../db/queries/operator/waiting.ts';
import { activityDeps } from '../support/activity.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { createRail } from '../support/payout-rail.ts';
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
  /** The payout's activity, with a rail that answers when the test does. */
  withSlowRail: (now = () => new Date()) => {
    const rail = createRail();
    const deps = { ...activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }), now, payoutRail: rail };
    return { rail, sendPayout: settlementActivities(deps).sendPayout };
  },
  /** The events about an object, oldest first, as a reader asks for them. */
  eventsOf: async (objectId: string, from = new Date(0)): Promise<Json[]> => {
    const url = `/v1/events?object_id=${objectId}&created_from=${from.toISOString()}`;
    return jsonOf(await api.call(partner, 'GET', url)).toReversed();
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

describe('an attempt that records slowly', () => {
  test("records the rail's confirmation as late evidence, although operators have ended the settlement meanwhile", async ({
    world,
    api,
    steps,
  }) => {
    const id = await world.funded();
    const { rail, sendPayout } = world.withSlowRail();
    await rail.untilCalled(sendPayout(steps.step(id)));
    const { expiresAt } = await steps.stored(id);
    expect(await steps.activities.reviewSettlement(steps.step(id, expiresAt?.getTime()))).toMatchObject({
      status: 'needs_review',
    });
    await requestResolution(api.deps, id, { outcome: 'refused', operator: 'ana', note: 'no trace of it' });
    await steps.activities.resolveReview(steps.step(id));
    const answer = payoutAnswer(id, 'payout_confirmed');
    await rail.answer(answer);
    const { status, exceptions } = await steps.read(id);
    expect(status).toBe('failed');
    expect(exceptions).toMatchObject([{ type: 'late_evidence', evidence_id: answer.evidenceId }]);
    expect((await world.eventsOf(id)).at(-1)).toMatchObject({
      type: 'settlement.exception',
      data: { status: 'failed', exception: { type: 'late_evidence', evidence_id: answer.evidenceId } },
    });
  });

  test('is dated when it commits: a reader of the events since its call sees settled and the certificate', async ({
    world,
    steps,
  }) => {
    const id = await world.funded();
    let now = new Date();
    const { rail, sendPayout } = world.withSlowRail(() => now);
    await rail.untilCalled(sendPayout(steps.step(id)));
    now = new Date(now.getTime() + 10 * MINUTE_MS);
    await rail.answer(payoutAnswer(id, 'payout_confirmed'));
    const settled = await steps.read(id);
    expect(settled.timeline.at(-1)).toMatchObject({ status: 'settled', at: now.toISOString() });
    expect((await world.eventsOf(id, now)).map(({ type }) => type)).toEqual(['settlement.settled']);
    expect(await world.eventsOf(settled.certificate_id, now)).toMatchObject([{ type: 'certificate.issued' }]);
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
