/**
 * Evidence, the end of a wait, cancellation and clocks at the same moment, in both orders: the one that commits first
 * decides.
 */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { evidence, postings } from '../../db/schema/index.ts';
import type { Caller, TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { untilBlocked } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { BY_WIRE, type Steps } from '../support/settlement.ts';

const DAY_MS = 86_400_000;

/** `races`: what happens to a settlement at the same moment. */
const test = withApi().extend('races', FILE, ({ api, partner, steps }) => createRaces(api, partner, steps));

function createRaces(api: TestApi, partner: Caller, steps: Steps) {
  const { db, pool } = api.connection;
  const post = (id: string, action: string, body?: object) =>
    api.call(partner, 'POST', `/v2/${action.replace(':id', id)}`, body).then((answer) => answer.statusCode);
  return {
    /**
     * Makes each task wait for the settlement's row before the next one begins, so that they get it in this order. At
     * most one task may follow a task that changes the row: PostgreSQL does not order those that waited for the old
     * version.
     */
    inOrder: async (settlementId: string, tasks: readonly (() => PromiseLike<unknown>)[]): Promise<unknown[]> => {
      const holder = await pool.connect();
      try {
        await holder.query('BEGIN');
        await holder.query('SELECT 1 FROM settlements WHERE settlement_id = $1 FOR UPDATE', [settlementId]);
        const running: PromiseLike<unknown>[] = [];
        for (const task of tasks) {
          running.push(task());
          await untilBlocked(pool, running.length);
        }
        await holder.query('COMMIT');
        return await Promise.all(running);
      } finally {
        holder.release(true);
      }
    },
    pay: (id: string, amountMinor = 25_000) =>
      sendBankledger(api, bankledgerBody(id, { amount_reconciled: amountMinor })).then(
        (answer) => jsonOf(answer).matched,
      ),
    cancel: (id: string) => post(id, 'settle/:id/cancel'),
    advance: (id: string, by: string) => post(id, 'test-helpers/settlements/:id/advance', { by }),
    review: (id: string, nowMs?: number) =>
      steps.activities.reviewSettlement(steps.step(id, nowMs)).then(({ status }) => status),
    endOf: async (id: string): Promise<number> =>
      (await steps.stored(id)).expiresAt?.getTime() ?? expect.fail('the settlement does not wait'),
    exceptionsOf: async (id: string) => (await steps.read(id)).exceptions.map(({ type }: { type: string }) => type),
    /** How many days after the current real time the evidence is dated. */
    daysAhead: async (id: string): Promise<number> => {
      const [received] = await db.select().from(evidence).where(eq(evidence.settlementId, id));
      if (!received) throw new Error('there is no evidence');
      return (received.receivedAt.getTime() - Date.now()) / DAY_MS;
    },
    /** Expects that no evidence is pending, and that all money is accounted for as paid, as fees or as due back. */
    expectSettledBooks: async (id: string, dueBackMinor: bigint): Promise<void> => {
      const received = await db.select().from(evidence).where(eq(evidence.settlementId, id));
      expect(received.filter(({ pending }) => pending)).toEqual([]);
      const booked = await db.select().from(postings).where(eq(postings.settlementId, id));
      const balanceOf = (account: string) =>
        booked.filter((posting) => posting.account === account).reduce((sum, { amountMinor }) => sum + amountMinor, 0n);
      expect([balanceOf('settlement_funds'), balanceOf('refund_due')]).toEqual([0n, -dueBackMinor]);
    },
  };
}

describe('a wait that ends while evidence is being committed', () => {
  test('evidence first: funded, although the wait is over', async ({ races, steps }) => {
    const { inOrder, pay, review, endOf, exceptionsOf } = races;
    const id = await steps.waiting(BY_WIRE);
    const end = await endOf(id);
    expect(await inOrder(id, [() => pay(id), () => review(id, end)])).toEqual([true, 'funded']);
    expect(await exceptionsOf(id)).toEqual([]);
  });

  test('the end first: expired, and the evidence is late', async ({ races, steps }) => {
    const { inOrder, pay, review, endOf, exceptionsOf, expectSettledBooks } = races;
    const id = await steps.waiting(BY_WIRE);
    const end = await endOf(id);
    expect(await review(id, end - 1)).toBe('awaiting_funds');
    expect(await inOrder(id, [() => review(id, end), () => pay(id)])).toEqual(['expired', true]);
    expect(await exceptionsOf(id)).toEqual(['late_evidence']);
    await expectSettledBooks(id, 25_000n);
  });
});

describe('a cancellation at the same moment as evidence', () => {
  test('evidence first: 409, and the settlement is funded', async ({ races, steps }) => {
    const { inOrder, pay, cancel, review } = races;
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => pay(id), () => cancel(id)])).toEqual([true, 409]);
    expect(await review(id)).toBe('funded');
  });

  test('the cancellation first: 200, and the evidence is late', async ({ races, steps }) => {
    const { inOrder, pay, cancel, exceptionsOf, expectSettledBooks } = races;
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => cancel(id), () => pay(id)])).toEqual([200, true]);
    expect(await exceptionsOf(id)).toEqual(['late_evidence']);
    await expectSettledBooks(id, 25_000n);
  });

  test('fifty cancellations at once: each is answered 200, and one is written', async ({ races, steps }) => {
    const { cancel } = races;
    const id = await steps.waiting(BY_WIRE);
    const answers = await Promise.all(Array.from({ length: 50 }, () => cancel(id)));
    expect(new Set(answers)).toEqual(new Set([200]));
    const { timeline } = await steps.read(id);
    expect(timeline.map(({ status }: Json) => status)).toEqual(['accepted', 'awaiting_funds', 'canceled']);
  });
});

describe('two payments at the same moment', () => {
  test('both before the settlement is reviewed: the first funds it, the second is due back', async ({
    races,
    steps,
  }) => {
    const { inOrder, pay, review, exceptionsOf, expectSettledBooks } = races;
    const id = await steps.waiting(BY_WIRE);
    await inOrder(id, [() => pay(id), () => pay(id)]);
    await review(id);
    expect(await exceptionsOf(id)).toEqual(['overpaid']);
    expect((await steps.activities.sendPayout(steps.step(id))).status).toBe('settled');
    await expectSettledBooks(id, 25_000n);
  });
});

describe('a clock that is moved', () => {
  test('is not seen by a review that is done, and is by the next one', async ({ races, steps }) => {
    const { inOrder, advance, review } = races;
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => review(id), () => advance(id, 'P10D')])).toEqual(['awaiting_funds', 202]);
    expect(await review(id)).toBe('expired');
  });

  test('409 after the settlement ended, and the clock stays', async ({ races, steps }) => {
    const { inOrder, advance, review, endOf } = races;
    const id = await steps.waiting(BY_WIRE);
    const end = await endOf(id);
    expect(await inOrder(id, [() => review(id, end), () => advance(id, 'P1D')])).toEqual(['expired', 409]);
    expect((await steps.stored(id)).clockOffsetMs).toBe(0);
  });
});

describe('evidence of internal funding', () => {
  test('is dated by the clock of the settlement, which is added once', async ({ races, steps }) => {
    const { advance, daysAhead } = races;
    const id = await steps.acceptInternal();
    await advance(id, 'P5D');
    await steps.activities.admitSettlement(steps.step(id));
    expect(Math.round(await daysAhead(id))).toBe(5);
  });
});
