/** The activities of a settlement against the database: run twice, run at once, and failing at each write. */
import { count, eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { createActivities } from '../../activities/index.ts';
import { certificates, events, outbox, postings, settlements, settlementTransitions } from '../../db/schema/index.ts';
import { servedOrganization } from '../../db/tenant.ts';
import { activityDeps } from '../support/activity.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { whileWritesFail } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { BY_WIRE } from '../support/settlement.ts';

const test = withApi().extend('world', FILE, ({ api, steps }) => {
  const { db } = api.connection;
  const { activities, step } = steps;
  return {
    accept: () => steps.accept(),
    /** The activities that lead a settlement from accepted to settled, with the status after each. */
    path: [
      { run: (id: string) => activities.admitSettlement(step(id)), to: 'awaiting_funds' },
      { run: (id: string) => activities.reviewSettlement(step(id)), to: 'funded' },
      { run: (id: string) => activities.sendPayout(step(id)), to: 'settled' },
    ] as const,
    pay: (id: string) => sendCardproc(api, cardprocBody(id)),
    /** The settlement, and how many rows of each kind it has. */
    recordsOf: async (settlementId: string) => {
      const [state] = await db.select().from(settlements).where(eq(settlements.settlementId, settlementId));
      const countOf = async (table: typeof postings | typeof settlementTransitions | typeof certificates) =>
        (await db.select({ n: count() }).from(table).where(eq(table.settlementId, settlementId)))[0]?.n;
      const countFor = async (table: typeof events | typeof outbox) =>
        (await db.select({ n: count() }).from(table).where(eq(table.objectId, settlementId)))[0]?.n;
      return {
        state,
        postings: await countOf(postings),
        transitions: await countOf(settlementTransitions),
        certificates: await countOf(certificates),
        events: await countFor(events),
        outbox: await countFor(outbox),
      };
    },
  };
});

describe('each activity of a settlement', () => {
  test('commits for the organization that its input names, and for none after it', async ({ world, api, steps }) => {
    const served: (string | undefined)[] = [];
    const nudge = () => void served.push(servedOrganization());
    const { admitSettlement } = createActivities(activityDeps(api, undefined, { nudge }));
    const input = steps.step(await world.accept());
    await admitSettlement(input);
    expect([...served, servedOrganization()]).toEqual([input.orgId, undefined]);
  });

  test('run twice, does nothing the second time and returns the same status', async ({ world }) => {
    const id = await world.accept();
    for (const { run, to } of world.path) {
      if (to === 'funded') await world.pay(id);
      const first = await run(id);
      const records = await world.recordsOf(id);
      expect(first.status).toBe(to);
      expect((await run(id)).status).toBe(to);
      expect(await world.recordsOf(id)).toEqual(records);
    }
  });

  test('run eight times at once, changes the settlement once', async ({ world }) => {
    const id = await world.accept();
    for (const { run, to } of world.path) {
      if (to === 'funded') await world.pay(id);
      const states = await Promise.all(Array.from({ length: 8 }, () => run(id)));
      expect(new Set(states.map((state) => state.status))).toEqual(new Set([to]));
    }
    expect(await world.recordsOf(id)).toMatchObject({ postings: 12, transitions: 5, certificates: 1 });
  });

  test.for(['settlement_transitions', 'postings', 'events', 'certificates'])(
    'failing while it writes %s, changes nothing, and its retry completes it',
    async (table, { world, api }) => {
      const id = await world.accept();
      for (const { run, to } of world.path) {
        if (to === 'funded') await world.pay(id);
        const before = await world.recordsOf(id);
        const failed = await whileWritesFail(api.owner.pool, table, () =>
          run(id).then(
            () => false,
            () => true,
          ),
        );
        // The payout is two transactions: the first one may have been committed when the second fails.
        if (failed && to !== 'settled') expect(await world.recordsOf(id)).toEqual(before);
        expect((await run(id)).status).toBe(to);
      }
      expect(await world.recordsOf(id)).toMatchObject({ postings: 12, transitions: 5, certificates: 1 });
    },
  );

  test.for(['settlement_transitions', 'events', 'audit_entries'])(
    'canceling the run and failing while it writes %s, changes nothing, and its retry completes it',
    async (table, { api, steps }) => {
      const id = await steps.waiting(BY_WIRE);
      const canceling = () => steps.activities.cancelOnRequest(steps.step(id));
      await expectUnchanged(api.connection.pool, () =>
        whileWritesFail(api.owner.pool, table, () => expect(canceling()).rejects.toThrow()),
      );
      expect(await canceling()).toEqual({ status: 'canceled' });
      await expectUnchanged(api.connection.pool, canceling);
    },
  );

  test('throws not_found for the settlement of another organization', async ({ world, api, steps }) => {
    const stranger = await api.createCaller();
    const id = await world.accept();
    await expect(steps.activities.admitSettlement({ ...steps.step(id), orgId: stranger.orgId })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});
