/** What an operator decides about a payout whose outcome is unknown, activity by activity against the database. */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { recordEvidenceAndSignal } from '../../db/queries/evidence.ts';
import { lockEvidenceTarget } from '../../db/queries/settlement.ts';
import { auditEntries, certificates, events, evidence, outbox, postings } from '../../db/schema/index.ts';
import { digestTables } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { BY_MANUAL_CARD } from '../support/settlement.ts';
import { whileWritesFail } from './failing-write.ts';

const WHO = { operator: 'Pat Operatorname', note: 'Confirmed with Ms. Uniquebanker by phone.' } as const;

const test = withApi().extend('world', FILE, ({ api: { connection }, steps }) => ({
  resolve: (id: string, outcome: 'paid' | 'refused') =>
    steps.activities.resolveReview({ ...steps.step(id), outcome, ...WHO }),
  auditOf: (id: string) => connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, id)),
  /** The balance of the account of what is due back, in minor units. */
  refundOf: async (id: string): Promise<bigint> =>
    (await connection.db.select().from(postings).where(eq(postings.settlementId, id)))
      .filter(({ account }) => account === 'refund_due')
      .reduce((sum, { amountMinor }) => sum + amountMinor, 0n),
}));

describe('a review', () => {
  test('of a settlement that is not in review changes nothing', async ({ world, api, steps }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    const before = await digestTables(api.connection.pool);
    expect((await world.resolve(id, 'paid')).status).toBe('awaiting_funds');
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });

  test.for(['audit_entries', 'settlement_transitions', 'postings', 'events', 'certificates'])(
    'that fails while it writes %s changes nothing, and its retry completes it',
    async (table, { world, api, steps }) => {
      const id = await steps.inReview();
      const before = await digestTables(api.connection.pool);
      await whileWritesFail(api.owner.pool, table, () => expect(world.resolve(id, 'paid')).rejects.toThrow());
      expect(await digestTables(api.connection.pool)).toEqual(before);
      expect((await world.resolve(id, 'paid')).status).toBe('settled');
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

  test('resolved again, by eight operators at once and with both outcomes, keeps the first decision', async ({
    world,
    steps,
  }) => {
    const id = await steps.inReview();
    const states = await Promise.all(
      Array.from({ length: 8 }, (_, index) => world.resolve(id, index % 2 === 0 ? 'paid' : 'refused')),
    );
    expect(new Set(states.map(({ status }) => status)).size).toBe(1);
    expect(await world.auditOf(id)).toHaveLength(1);
    expect((await world.resolve(id, 'refused')).status).toBe(states[0]?.status);
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

  test('is not decided by a late answer of the rail, which is recorded and sends no signal', async ({
    world,
    api,
    steps,
  }) => {
    const id = await steps.inReview();
    await api.connection.db.delete(outbox).where(eq(outbox.objectId, id));
    for (const kind of ['payout_confirmed', 'payout_refused'] as const) {
      await api.connection.db.transaction(async (tx) => {
        const settlement = (await lockEvidenceTarget(tx, id)) ?? expect.fail('no settlement');
        await recordEvidenceAndSignal(tx, settlement, payoutAnswer(id, kind), { at: new Date(), requestId: 'test' });
      });
    }
    const { status, exceptions } = await steps.read(id);
    expect([status, exceptions.map(({ type }: Json) => type)]).toEqual(['needs_review', ['late_evidence']]);
    expect(await api.connection.db.select().from(outbox).where(eq(outbox.objectId, id))).toEqual([]);
    await world.resolve(id, 'refused');
    expect(
      (await api.connection.db.select().from(evidence).where(eq(evidence.settlementId, id))).filter(
        ({ pending }) => pending,
      ),
    ).toEqual([]);
  });

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
