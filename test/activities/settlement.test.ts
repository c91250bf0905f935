/** The activities of a settlement against the database: run twice, run at once, and failing at each write. */
import { count, eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { recordEvidence } from '../../db/commands/evidence.ts';
import { lockEvidenceTarget } from '../../db/queries/settlement.ts';
import { certificates, events, outbox, postings, settlements, settlementTransitions } from '../../db/schema/index.ts';
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
    pay: (settlementId: string, amountMinor: bigint) =>
      db.transaction(async (tx) => {
        const settlement = (await lockEvidenceTarget(tx, settlementId)) ?? expect.fail('no settlement');
        const paid = {
          evidenceId: crypto.randomUUID(),
          provider: 'cardproc',
          eventId: crypto.randomUUID(),
          kind: 'collection_succeeded',
          amountMinor,
          currency: 'USD',
          failure: null,
          sha256: '00'.repeat(32),
        } as const;
        await recordEvidence(tx, { settlement, exceptions: [] }, paid, { at: new Date(), requestId: 'test' });
      }),
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
  test('run twice, does nothing the second time and returns the same status', async ({ world }) => {
    const id = await world.accept();
    for (const { run, to } of world.path) {
      if (to === 'funded') await world.pay(id, 25_000n);
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
      if (to === 'funded') await world.pay(id, 25_000n);
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
        if (to === 'funded') await world.pay(id, 25_000n);
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
    },
  );

  test('throws not_found for the settlement of another organization', async ({ world, api, steps }) => {
    const stranger = await api.createCaller();
    const id = await world.accept();
    await expect(steps.activities.admitSettlement({ ...steps.step(id), orgId: stranger.orgId })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('ends a wait when its window is over, not a millisecond before', async ({ world, steps }) => {
    const id = await world.accept();
    const admitted = await steps.activities.admitSettlement(steps.step(id));
    expect(admitted.waitMs).toBe(30 * 60_000);
    const { state } = await world.recordsOf(id);
    const end = state?.expiresAt?.getTime() ?? Number.NaN;
    expect((await steps.activities.reviewSettlement(steps.step(id, end - 1))).status).toBe('awaiting_funds');
    expect((await steps.activities.reviewSettlement(steps.step(id, end))).status).toBe('expired');
  });
});

test('payment instructions are shown only while the wire is waited for', async ({ api, partner, steps }) => {
  const id = await steps.accept(BY_WIRE);
  expect((await steps.read(id)).payment_instructions).toBeNull();
  await steps.activities.admitSettlement(steps.step(id));
  expect((await steps.read(id)).payment_instructions).toMatchObject({ reference: id });
  await api.call(partner, 'POST', `/v2/settle/${id}/cancel`);
  expect((await steps.read(id)).payment_instructions).toBeNull();
});
