/** From the moment that a call to the rail may have gone out, unknown is not failed (contract §6). */
import { MockActivityEnvironment } from '@temporalio/testing';
import { Registry } from 'prom-client';
import { describe, expect } from 'vitest';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { settlementActivities } from '../../activities/settlement.ts';
import { connect } from '../../db/client.ts';
import { listOpenSettlements } from '../../db/queries/operator/waiting.ts';
import { activityMetrics } from '../../process/activity-metrics.ts';
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
  /** The payout's activity, with a rail that answers when the test does. */
  withSlowRail: (now = () => new Date()) => {
    const rail = createRail();
    const deps = { ...activityDeps(api), now, payoutRail: rail };
    return { rail, sendPayout: settlementActivities(deps).sendPayout };
  },
  /** The events about an object, oldest first, as a reader asks for them. */
  eventsOf: async (objectId: string, from = new Date(0)): Promise<Json[]> => {
    const url = `/v1/events?object_id=${objectId}&created_from=${from.toISOString()}`;
    return jsonOf(await api.call(partner, 'GET', url)).toReversed();
  },
}));

describe('a payout under way', () => {
  test('comes into review when its call is repeated through the end of the wait', async ({ world, steps }) => {
    const id = await world.funded();
    await steps.activities.sendPayout(steps.step(id));
    const attempt = (lateMs: number) =>
      new MockActivityEnvironment({ scheduledTimestampMs: 0, currentAttemptScheduledTimestampMs: lateMs }).run(
        steps.activities.sendPayout,
        steps.step(id),
      );
    expect(await attempt(3 * DAY_MS - MINUTE_MS)).toMatchObject({ status: 'paying_out' });
    expect(await attempt(3 * DAY_MS + MINUTE_MS)).toMatchObject({ status: 'needs_review' });
  });
});

describe('an attempt that records slowly', () => {
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

describe('the alert PayoutsFail', () => {
  test('counts a call to the rail that fails, and not a database that fails before it', async ({
    api,
    world,
    steps,
  }) => {
    const id = await world.funded();
    const registry = new Registry();
    const deps = { ...activityDeps(api), observer: activityMetrics(registry) };
    const failures = async (): Promise<number> => {
      const name = 'settlement_payout_call_failures_total';
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await registry.metrics())?.[1]);
    };
    const nowhere = connect('postgresql://127.0.0.1:1/none', { poolSizeMax: 1, name: 'test', onIdleError: () => {} });
    const withoutDatabase = settlementActivities({ ...deps, db: nowhere.db }).sendPayout(steps.step(id));
    await expect(withoutDatabase).rejects.toThrow();
    expect(await failures()).toBe(0);
    const payoutRail = { send: () => Promise.reject(new Error('no answer')) };
    await expect(settlementActivities({ ...deps, payoutRail }).sendPayout(steps.step(id))).rejects.toThrow('no answer');
    expect(await failures()).toBe(1);
  });
});

describe('a wrong clock of another process', () => {
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
