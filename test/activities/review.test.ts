/** What an operator decides about a payout whose outcome is unknown, activity by activity against the database. */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { requestResolution } from '../../db/commands/review.ts';
import { auditEntries, certificates, events } from '../../db/schema/index.ts';
import { whileWritesFail } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { expectUnchanged } from '../support/refusal.ts';
import { BY_MANUAL_CARD, moveToProduction } from '../support/settlement.ts';

const WHO = { operator: 'Pat Operatorname', note: 'Confirmed with Ms. Uniquebanker by phone.' } as const;

const test = withApi().extend('world', FILE, ({ api, steps }) => ({
  request: (id: string, outcome: 'paid' | 'refused') => requestResolution(api.deps, id, { outcome, ...WHO }),
  resolve: async (id: string, outcome: 'paid' | 'refused') => {
    await requestResolution(api.deps, id, { outcome, ...WHO });
    return await steps.activities.resolveReview(steps.step(id));
  },
  auditOf: (id: string) => api.connection.db.select().from(auditEntries).where(eq(auditEntries.objectId, id)),
}));

describe('a review of a payout', () => {
  test('409 for a settlement that is not in review, and nothing is written', async ({ world, api, steps }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    await expectUnchanged(api.connection.pool, async () => {
      await expect(world.request(id, 'paid')).rejects.toMatchObject({ code: 'state_conflict' });
      expect((await steps.activities.resolveReview(steps.step(id))).status).toBe('awaiting_funds');
    });
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
      expect((await world.request(id, 'paid')).request.agreedAt).not.toBeNull();
    },
  );

  test.for(['reviewSettlement', 'admitSettlement'] as const)(
    'wakes the run once it is agreed, and is carried out by it, whatever became of the command (%s)',
    async (activity, { world, api, steps }) => {
      const id = await steps.inReview();
      const wakes = async () =>
        (await api.connection.pool.query('SELECT 1 FROM outbox WHERE object_id = $1 AND signal IS NOT NULL', [id]))
          .rowCount ?? 0;
      const before = await wakes();
      await world.request(id, 'refused');
      expect(await wakes()).toBe(before + 1);
      expect(await steps.activities[activity](steps.step(id))).toMatchObject({ status: 'failed' });
    },
  );

  test('is left open by a run while nothing is agreed', async ({ world, api, steps }) => {
    const id = await steps.inReview();
    await moveToProduction(api, id);
    await requestResolution({ ...api.deps, runtime: 'production' }, id, { outcome: 'paid', ...WHO });
    await expectUnchanged(api.connection.pool, async () => {
      expect((await steps.activities.reviewSettlement(steps.step(id))).status).toBe('needs_review');
      await expect(steps.activities.resolveReview(steps.step(id))).rejects.toMatchObject({ code: 'state_conflict' });
    });
    expect(await world.auditOf(id)).toMatchObject([{ action: 'review_request' }]);
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
});
