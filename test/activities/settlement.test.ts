import { count, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SettlementState, settlementActivities } from '../../activities/settlement.ts';
import { lockEvidenceTarget, recordEvidence } from '../../db/queries/evidence.ts';
import { certificates, events, outbox, postings, settlements, settlementTransitions } from '../../db/schema/index.ts';
import type { SettlementStatus } from '../../domain/settlement.ts';
import { activityDeps } from '../support/activity.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';

let api: TestApi;
let caller: Caller;
let activities: ReturnType<typeof settlementActivities>;

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
  activities = settlementActivities(activityDeps(api, 'http://127.0.0.1:1', { nudge: () => undefined }));
});
afterAll(() => api.close());

const accept = async (
  overrides: Record<string, unknown> = {},
  recipient: Record<string, unknown> = {},
): Promise<string> => {
  const body = settleBody(await createRecipient({ api }, caller, recipient), overrides);
  const answer = await api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': crypto.randomUUID() });
  return jsonOf(answer).settlement_id;
};

const pay = (settlementId: string, amountMinor: bigint) =>
  api.connection.db.transaction(async (tx) => {
    const settlement = (await lockEvidenceTarget(tx, settlementId)) ?? expect.fail('no settlement');
    const eventId = crypto.randomUUID();
    const claim = {
      settlementId,
      provider: 'cardproc',
      eventId,
      kind: 'collection_succeeded',
      amountMinor,
      currency: 'USD',
      failure: null,
    } as const;
    await recordEvidence(tx, settlement, { ...claim, sha256: Buffer.alloc(32) }, { at: new Date(), requestId: 'test' });
  });

const step = (settlementId: string, nowMs = Date.now()) => ({ settlementId, orgId: caller.orgId, nowMs });

/** Everything that a step may write about a settlement. */
const traceOf = async (settlementId: string) => {
  const { db } = api.connection;
  const [state] = await db.select().from(settlements).where(eq(settlements.settlementId, settlementId));
  const countOf = async (table: typeof postings | typeof settlementTransitions | typeof certificates) =>
    (await db.select({ n: count() }).from(table).where(eq(table.settlementId, settlementId)))[0]?.n;
  const [told] = await db.select({ n: count() }).from(events).where(eq(events.objectId, settlementId));
  const [asked] = await db.select({ n: count() }).from(outbox).where(eq(outbox.objectId, settlementId));
  return {
    state,
    postings: await countOf(postings),
    transitions: await countOf(settlementTransitions),
    certificates: await countOf(certificates),
    events: told?.n,
    outbox: asked?.n,
  };
};

type Step = {
  readonly name: string;
  readonly run: (settlementId: string) => Promise<SettlementState>;
  readonly to: SettlementStatus;
};

const STEPS: readonly Step[] = [
  { name: 'admitSettlement', run: (id) => activities.admitSettlement(step(id)), to: 'awaiting_funds' },
  { name: 'reviewFunding', run: (id) => activities.reviewFunding(step(id)), to: 'funded' },
  { name: 'sendPayout', run: (id) => activities.sendPayout(step(id)), to: 'settled' },
];

describe('each step of a settlement', () => {
  test('run twice, it does nothing the second time and answers the same', async () => {
    const id = await accept();
    for (const { run, to } of STEPS) {
      if (to === 'funded') await pay(id, 25_000n);
      const first = await run(id);
      const trace = await traceOf(id);
      expect(first.status).toBe(to);
      expect((await run(id)).status).toBe(to);
      expect(await traceOf(id)).toEqual(trace);
    }
  });

  test('run eight times at once, it is taken once', async () => {
    const id = await accept();
    for (const { run, to } of STEPS) {
      if (to === 'funded') await pay(id, 25_000n);
      const states = await Promise.all(Array.from({ length: 8 }, () => run(id)));
      expect(new Set(states.map((state) => state.status))).toEqual(new Set([to]));
    }
    expect(await traceOf(id)).toMatchObject({ postings: 12, transitions: 5, certificates: 1 });
  });

  test.each(['settlement_transitions', 'postings', 'events', 'certificates'])(
    'failing while it writes %s, it leaves nothing behind, and the repetition completes it',
    async (table) => {
      const id = await accept();
      for (const { run, to } of STEPS) {
        if (to === 'funded') await pay(id, 25_000n);
        const before = await traceOf(id);
        await api.connection.pool.query(`ALTER TABLE ${table} ADD CONSTRAINT fails CHECK (false) NOT VALID`);
        const failed = await run(id).then(
          () => false,
          () => true,
        );
        await api.connection.pool.query(`ALTER TABLE ${table} DROP CONSTRAINT fails`);
        // The payout is two transactions: the first one may have been committed when the second fails.
        if (failed && to !== 'settled') expect(await traceOf(id)).toEqual(before);
        expect((await run(id)).status).toBe(to);
      }
      expect(await traceOf(id)).toMatchObject({ postings: 12, transitions: 5, certificates: 1 });
    },
  );

  test('a recipient deactivated before admission: rejected; after funding: failed, with the money due back', async () => {
    const deactivate = async (id: string) => {
      const { state } = await traceOf(id);
      await api.call(caller, 'DELETE', `/v1/recipients/${state?.recipientId}`);
    };
    const early = await accept();
    await deactivate(early);
    expect(await activities.admitSettlement(step(early))).toMatchObject({
      status: 'rejected',
      failureCode: 'recipient_inactive',
    });
    const late = await accept();
    await activities.admitSettlement(step(late));
    await pay(late, 25_000n);
    await activities.reviewFunding(step(late));
    await deactivate(late);
    expect(await activities.sendPayout(step(late))).toMatchObject({
      status: 'failed',
      failureCode: 'recipient_inactive',
    });
    const booked = await api.connection.db.select().from(postings).where(eq(postings.settlementId, late));
    expect(booked.filter((posting) => posting.account === 'refund_due').map((posting) => posting.amountMinor)).toEqual([
      -25_000n,
    ]);
  });

  test('another organization cannot take a step, and the step says no more than that there is nothing', async () => {
    const stranger = await api.createCaller();
    const id = await accept();
    await expect(activities.admitSettlement({ ...step(id), orgId: stranger.orgId })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  test('the wait ends when its window is over, not before', async () => {
    const id = await accept();
    const admitted = await activities.admitSettlement(step(id));
    expect(admitted.waitMs).toBe(30 * 60_000);
    const { state } = await traceOf(id);
    const end = state?.expiresAt?.getTime() ?? Number.NaN;
    expect((await activities.reviewFunding(step(id, end - 1))).status).toBe('awaiting_funds');
    expect((await activities.reviewFunding(step(id, end))).status).toBe('expired');
  });
});
