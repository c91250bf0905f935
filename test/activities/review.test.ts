/** What an operator decides about a payout whose outcome is unknown, activity by activity against the database. */
import { and, eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { recordEvidence } from '../../db/commands/evidence.ts';
import { requestResolution } from '../../db/commands/review.ts';
import { lockEvidenceTarget } from '../../db/queries/settlement.ts';
import { auditEntries, certificates, events, evidence, outbox, postings } from '../../db/schema/index.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { BY_MANUAL_CARD } from '../support/settlement.ts';
import { whileWritesFail } from './failing-write.ts';

const WHO = { operator: 'Pat Operatorname', note: 'Confirmed with Ms. Uniquebanker by phone.' } as const;

const test = withApi().extend('world', FILE, ({ api, steps }) => ({
  request: (id: string, outcome: 'paid' | 'refused') => requestResolution(api.deps, id, { outcome, ...WHO }),
  resolve: async (id: string, outcome: 'paid' | 'refused') => {
    await requestResolution(api.deps, id, { outcome, ...WHO });
    return await steps.activities.resolveReview(steps.step(id));
  },
  auditOf: (id: string) => api.connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, id)),
  /** The balance of the account of what is due back, in minor units. */
  refundOf: async (id: string): Promise<bigint> =>
    (await api.connection.db.select().from(postings).where(eq(postings.settlementId, id)))
      .filter(({ account }) => account === 'refund_due')
      .reduce((sum, { amountMinor }) => sum + amountMinor, 0n),
}));

describe('a review of a payout', () => {
  test('409 for a settlement that is not in review, and nothing is written', async ({ world, api, steps }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    await expectUnchanged(api.connection.pool, async () => {
      await expect(world.request(id, 'paid')).rejects.toMatchObject({ code: 'state_conflict' });
      expect((await steps.activities.resolveReview(steps.step(id))).status).toBe('awaiting_funds');
    });
  });

  test('is refused while operators have agreed on nothing, and nothing is written', async ({ api, steps }) => {
    const id = await steps.inReview();
    const resolving = () => steps.activities.resolveReview(steps.step(id));
    await expectUnchanged(api.connection.pool, () =>
      expect(resolving()).rejects.toMatchObject({ code: 'state_conflict' }),
    );
  });

  test.for(['settlement_transitions', 'postings', 'events', 'certificates'])(
    'changes nothing if it fails while it writes %s, and its retry completes it',
    async (table, { world, api, steps }) => {
      const id = await steps.inReview();
      await world.request(id, 'paid');
      const resolve = () => steps.activities.resolveReview(steps.step(id));
      await expectUnchanged(api.connection.pool, () =>
        whileWritesFail(api.owner.pool, table, () => expect(resolve()).rejects.toThrow()),
      );
      expect((await resolve()).status).toBe('settled');
    },
  );

  test.for(['audit_entries', 'review_requests'])(
    'a request that fails while it writes %s changes nothing, and its retry completes it',
    async (table, { world, api, steps }) => {
      const id = await steps.inReview();
      const request = () => world.request(id, 'paid');
      await expectUnchanged(api.connection.pool, () =>
        whileWritesFail(api.owner.pool, table, () => expect(request()).rejects.toThrow()),
      );
      expect((await world.request(id, 'paid')).agreedAt).not.toBeNull();
    },
  );

  test('resolved as paid settles, with a certificate and one audit entry of the operator and the note', async ({
    world,
    partner,
    steps,
  }) => {
    const id = await steps.inReview();
    expect(await world.resolve(id, 'paid')).toMatchObject({ status: 'settled' });
    expect((await steps.stored(id)).certificateId).toMatch(/^CERT-/);
    expect(await world.auditOf(id)).toMatchObject([
      { orgId: partner.orgId, objectId: id, action: 'resolve_review_paid', ...WHO },
    ]);
    expect((await steps.read(id)).timeline.at(-1)).toMatchObject({ status: 'settled', reason: 'resolved_paid' });
  });

  test('resolved as refused fails, and the collected money is due back', async ({ world, steps }) => {
    const id = await steps.inReview();
    expect(await world.resolve(id, 'refused')).toMatchObject({ status: 'failed', failureCode: 'payout_refused' });
    expect(await world.refundOf(id)).toBe(-25_000n);
    expect(await world.auditOf(id)).toMatchObject([{ action: 'resolve_review_refused', ...WHO }]);
    expect((await steps.read(id)).timeline.at(-1)).toMatchObject({ status: 'failed', reason: 'resolved_refused' });
  });

  test('resolved by eight operators at once and with both outcomes, keeps the first decision', async ({
    world,
    steps,
  }) => {
    const id = await steps.inReview();
    await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) => world.resolve(id, index % 2 === 0 ? 'paid' : 'refused')),
    );
    const { status } = await steps.stored(id);
    expect(['settled', 'failed']).toContain(status);
    expect(await world.auditOf(id)).toHaveLength(1);
    await expect(world.request(id, 'refused')).rejects.toMatchObject({ code: 'state_conflict' });
    expect((await steps.stored(id)).status).toBe(status);
  });

  test('shows partners nothing of what the operator wrote: not in reads, events or the certificate', async ({
    world,
    api,
    partner,
    steps,
  }) => {
    const id = await steps.inReview();
    await world.resolve(id, 'paid');
    const { certificateId } = await steps.stored(id);
    const ownEvents = await api.connection.db.select().from(events).where(eq(events.orgId, partner.orgId));
    const [certificate] = await api.connection.db
      .select()
      .from(certificates)
      .where(eq(certificates.certId, certificateId ?? ''));
    const shown = [
      JSON.stringify(await steps.read(id)),
      certificate?.content.toString() ?? expect.fail('no certificate'),
      ...ownEvents.map(({ body }) => body.toString()),
    ];
    for (const text of shown) for (const word of ['Operatorname', 'Uniquebanker']) expect(text).not.toContain(word);
  });

  test.for([
    ['payout_confirmed', 'refused', 'settled'],
    ['payout_refused', 'paid', 'failed'],
  ] as const)(
    "is decided by the rail's own %s, although operators agree on %s",
    async ([kind, outcome, end], { world, api, steps }) => {
      const id = await steps.inReview();
      await api.connection.db.delete(outbox).where(eq(outbox.objectId, id));
      await world.request(id, outcome);
      await api.connection.db.transaction(async (tx) => {
        const settlement = (await lockEvidenceTarget(tx, id)) ?? expect.fail('no settlement');
        await recordEvidence(tx, { settlement, exceptions: [] }, payoutAnswer(id, kind), {
          at: new Date(),
          requestId: 'test',
        });
      });
      const signals = await api.connection.db.select().from(outbox).where(eq(outbox.objectId, id));
      expect(signals.map(({ signal }) => signal)).toEqual(['evidenceRecorded']);
      expect((await steps.activities.resolveReview(steps.step(id))).status).toBe(end);
      const pending = and(eq(evidence.settlementId, id), eq(evidence.pending, true));
      expect(await api.connection.db.select().from(evidence).where(pending)).toEqual([]);
    },
  );

  test('has an audit entry that cannot be changed or removed', async ({ world, api, steps }) => {
    const id = await steps.inReview();
    await world.resolve(id, 'paid');
    for (const statement of [
      `UPDATE audit_entries SET operator = 'x'`,
      'DELETE FROM audit_entries',
      'TRUNCATE audit_entries',
    ]) {
      await expect(api.owner.pool.query(statement)).rejects.toMatchObject({ code: '23001' });
    }
  });
});
