/** What an operator decides about a payout of unknown outcome, step by step against the database. */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { payoutAnswer } from '../../activities/providers/payout-rail.ts';
import { lockEvidenceTarget, recordEvidenceAndSignal } from '../../db/queries/evidence.ts';
import { auditEntries, certificates, events, evidence, outbox, postings } from '../../db/schema/index.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { digestTables } from '../support/database.ts';
import type { Json } from '../support/partner.ts';
import { BY_MANUAL_CARD, createSteps, type Steps } from '../support/settlement.ts';

const WHO = { operator: 'Pat Operatorname', note: 'Confirmed with Ms. Uniquebanker by phone.' } as const;

let api: TestApi;
let caller: Caller;
let steps: Steps;

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
  steps = createSteps(api, caller);
});
afterAll(() => api.close());

const resolve = (id: string, outcome: 'paid' | 'refused') =>
  steps.activities.resolveReview({ ...steps.step(id), outcome, ...WHO });
const auditOf = (id: string) => api.connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, id));
const refundOf = async (id: string) =>
  (await api.connection.db.select().from(postings).where(eq(postings.settlementId, id)))
    .filter(({ account }) => account === 'refund_due')
    .reduce((sum, { amountMinor }) => sum + amountMinor, 0n);

describe('a review', () => {
  test('of a settlement that is not in one changes nothing', async () => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    const before = await digestTables(api.connection.pool);
    expect((await resolve(id, 'paid')).status).toBe('awaiting_funds');
    expect(await digestTables(api.connection.pool)).toEqual(before);
  });

  test.each(['audit_entries', 'settlement_transitions', 'postings', 'events', 'certificates'])(
    'that fails while it writes %s leaves nothing behind, and the repetition completes it',
    async (table) => {
      const id = await steps.inReview();
      const before = await digestTables(api.connection.pool);
      await api.connection.pool.query(`ALTER TABLE ${table} ADD CONSTRAINT fails CHECK (false) NOT VALID`);
      await expect(resolve(id, 'paid')).rejects.toThrow();
      await api.connection.pool.query(`ALTER TABLE ${table} DROP CONSTRAINT fails`);
      expect(await digestTables(api.connection.pool)).toEqual(before);
      expect((await resolve(id, 'paid')).status).toBe('settled');
    },
  );

  test('resolved as paid settles, with a certificate and one audit entry that says who and why', async () => {
    const id = await steps.inReview();
    expect(await resolve(id, 'paid')).toMatchObject({ status: 'settled' });
    expect((await steps.stored(id)).certificateId).toMatch(/^CERT-/);
    expect(await auditOf(id)).toMatchObject([
      { orgId: caller.orgId, objectId: id, action: 'resolve_review_paid', ...WHO },
    ]);
    expect((await steps.read(id)).timeline.at(-1)).toMatchObject({ status: 'settled', reason: 'resolved_paid' });
  });

  test('resolved as refused fails, and what was collected is due back', async () => {
    const id = await steps.inReview();
    expect(await resolve(id, 'refused')).toMatchObject({ status: 'failed', failureCode: 'payout_refused' });
    expect(await refundOf(id)).toBe(-25_000n);
    expect(await auditOf(id)).toMatchObject([{ action: 'resolve_review_refused', ...WHO }]);
    expect((await steps.read(id)).timeline.at(-1)).toMatchObject({ status: 'failed', reason: 'resolved_refused' });
  });

  test('resolved again, the other way round and by eight at once, stays as it was decided first', async () => {
    const id = await steps.inReview();
    const states = await Promise.all(
      Array.from({ length: 8 }, (_, index) => resolve(id, index % 2 === 0 ? 'paid' : 'refused')),
    );
    expect(new Set(states.map(({ status }) => status)).size).toBe(1);
    expect(await auditOf(id)).toHaveLength(1);
    expect((await resolve(id, 'refused')).status).toBe(states[0]?.status);
  });

  test("tells partners nothing of the operator's words: not in reads, events or the certificate", async () => {
    const id = await steps.inReview();
    await resolve(id, 'paid');
    const { certificateId } = await steps.stored(id);
    const told = await api.connection.db.select().from(events).where(eq(events.orgId, caller.orgId));
    const [certificate] = await api.connection.db
      .select()
      .from(certificates)
      .where(eq(certificates.certId, certificateId ?? ''));
    const shown = [
      JSON.stringify(await steps.read(id)),
      certificate?.content.toString() ?? expect.fail('no certificate'),
      ...told.map(({ body }) => body.toString()),
    ];
    for (const text of shown) for (const word of ['Operatorname', 'Uniquebanker']) expect(text).not.toContain(word);
  });

  test("is not decided by the rail's late answer, which is recorded and rings nobody", async () => {
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
    await resolve(id, 'refused');
    expect(
      (await api.connection.db.select().from(evidence).where(eq(evidence.settlementId, id))).filter(
        ({ pending }) => pending,
      ),
    ).toEqual([]);
  });

  test('its audit entry can be neither changed nor removed', async () => {
    const id = await steps.inReview();
    await resolve(id, 'paid');
    for (const statement of [
      `UPDATE audit_entries SET operator = 'x'`,
      'DELETE FROM audit_entries',
      'TRUNCATE audit_entries',
    ]) {
      await expect(api.connection.pool.query(statement)).rejects.toMatchObject({ code: '23001' });
    }
  });
});
