/** Evidence, windows, cancellation and clocks that meet at the same moment, in both orders: whichever commits first decides. */
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { evidence, postings } from '../../db/schema/index.ts';
import { type Caller, createTestApi, type TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { untilBlocked } from '../support/database.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { BY_WIRE, createSteps, type Steps } from '../support/settlement.ts';

let api: TestApi;
let caller: Caller;
let steps: Steps;

beforeAll(async () => {
  api = await createTestApi();
  caller = await api.createCaller();
  steps = createSteps(api, caller);
});
afterAll(() => api.close());

/**
 * Lets each of them wait for the settlement's row before the next one begins, so that they get it in this order. Behind
 * one that changes the row there is room for one more: PostgreSQL lets those who waited for the old version race.
 */
async function inOrder(settlementId: string, tasks: readonly (() => PromiseLike<unknown>)[]): Promise<unknown[]> {
  const { pool } = api.connection;
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
}

const pay = (id: string, amount = 25_000) =>
  sendBankledger(api, bankledgerBody(id, { amount_reconciled: amount })).then((answer) => jsonOf(answer).matched);
const cancel = (id: string) => api.call(caller, 'POST', `/v2/settle/${id}/cancel`).then((answer) => answer.statusCode);
const advance = (id: string, by: string) =>
  api.call(caller, 'POST', `/v2/test-helpers/settlements/${id}/advance`, { by }).then((answer) => answer.statusCode);
const review = (id: string, nowMs?: number) =>
  steps.activities.reviewFunding(steps.step(id, nowMs)).then(({ status }) => status);
const endOf = async (id: string): Promise<number> =>
  (await steps.stored(id)).expiresAt?.getTime() ?? expect.fail('no wait');
const exceptionsOf = async (id: string) => (await steps.read(id)).exceptions.map(({ type }: { type: string }) => type);

/** Nothing is left to fold, and every account but the bank's, the fees' and what is due back is empty. */
async function expectSettledBooks(id: string, dueBackMinor: bigint): Promise<void> {
  const { db } = api.connection;
  expect(
    (await db.select().from(evidence).where(eq(evidence.settlementId, id))).filter(({ pending }) => pending),
  ).toEqual([]);
  const booked = await db.select().from(postings).where(eq(postings.settlementId, id));
  const balanceOf = (account: string) =>
    booked.filter((posting) => posting.account === account).reduce((sum, { amountMinor }) => sum + amountMinor, 0n);
  expect([balanceOf('settlement_funds'), balanceOf('refund_due')]).toEqual([0n, -dueBackMinor]);
}

describe('a window that ends while evidence is being committed', () => {
  test('evidence first: funded, though the window is over', async () => {
    const id = await steps.waiting(BY_WIRE);
    const end = await endOf(id);
    expect(await inOrder(id, [() => pay(id), () => review(id, end)])).toEqual([true, 'funded']);
    expect(await exceptionsOf(id)).toEqual([]);
  });

  test('the end first: expired, and the evidence comes late', async () => {
    const id = await steps.waiting(BY_WIRE);
    const end = await endOf(id);
    expect(await inOrder(id, [() => review(id, end), () => pay(id)])).toEqual(['expired', true]);
    expect(await exceptionsOf(id)).toEqual(['late_evidence']);
    await expectSettledBooks(id, 25_000n);
  });

  test('a part of it first: expired, and the part is due back', async () => {
    const id = await steps.waiting(BY_WIRE);
    const end = await endOf(id);
    expect(await inOrder(id, [() => pay(id, 10_000), () => review(id, end)])).toEqual([true, 'expired']);
    await expectSettledBooks(id, 10_000n);
  });
});

describe('a cancellation that meets evidence', () => {
  test('evidence first: 409, and it is funded', async () => {
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => pay(id), () => cancel(id)])).toEqual([true, 409]);
    expect(await review(id)).toBe('funded');
  });

  test('the cancellation first: 200, and the evidence comes late', async () => {
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => cancel(id), () => pay(id)])).toEqual([200, true]);
    expect(await exceptionsOf(id)).toEqual(['late_evidence']);
    await expectSettledBooks(id, 25_000n);
  });

  test('a part of the amount first: 200, and both the part and what comes later are due back', async () => {
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => pay(id, 10_000), () => cancel(id), () => pay(id, 15_000)])).toEqual([
      true,
      200,
      true,
    ]);
    expect((await steps.read(id)).status).toBe('canceled');
    await expectSettledBooks(id, 25_000n);
  });

  test('a return first: 409, and it fails', async () => {
    const id = await steps.waiting(BY_WIRE);
    const returned = () =>
      sendBankledger(api, bankledgerBody(id, {}, 'returned')).then((answer) => jsonOf(answer).matched);
    expect(await inOrder(id, [returned, () => cancel(id)])).toEqual([true, 409]);
    expect(await review(id)).toBe('failed');
  });

  test('fifty cancellations at once: each is answered 200, and one is written', async () => {
    const id = await steps.waiting(BY_WIRE);
    const answers = await Promise.all(Array.from({ length: 50 }, () => cancel(id)));
    expect(new Set(answers)).toEqual(new Set([200]));
    const { timeline } = await steps.read(id);
    expect(timeline.map(({ status }: Json) => status)).toEqual(['accepted', 'awaiting_funds', 'canceled']);
  });
});

describe('two payments that meet', () => {
  test('both of the whole amount: funded once, and the second is due back', async () => {
    const id = await steps.waiting(BY_WIRE);
    await inOrder(id, [() => pay(id), () => review(id), () => pay(id)]);
    expect(await exceptionsOf(id)).toEqual(['overpaid']);
    expect((await steps.activities.sendPayout(steps.step(id))).status).toBe('settled');
    await expectSettledBooks(id, 25_000n);
  });

  test('before either is folded: the first funds, the second is due back just the same', async () => {
    const id = await steps.waiting(BY_WIRE);
    await inOrder(id, [() => pay(id), () => pay(id)]);
    await review(id);
    expect(await exceptionsOf(id)).toEqual(['overpaid']);
    expect((await steps.activities.sendPayout(steps.step(id))).status).toBe('settled');
    await expectSettledBooks(id, 25_000n);
  });

  test('a payment and its return: funded and returned in this order, failed in the other', async () => {
    const returned = (id: string) => sendBankledger(api, bankledgerBody(id, {}, 'returned'));
    const paidFirst = await steps.waiting(BY_WIRE);
    await inOrder(paidFirst, [() => pay(paidFirst), () => returned(paidFirst)]);
    await review(paidFirst);
    expect([(await steps.stored(paidFirst)).status, await exceptionsOf(paidFirst)]).toEqual(['funded', ['returned']]);
    const returnedFirst = await steps.waiting(BY_WIRE);
    await inOrder(returnedFirst, [() => returned(returnedFirst), () => pay(returnedFirst)]);
    await review(returnedFirst);
    expect([(await steps.stored(returnedFirst)).status, await exceptionsOf(returnedFirst)]).toEqual(['failed', []]);
    await expectSettledBooks(returnedFirst, 25_000n);
  });
});

describe('a clock that is moved', () => {
  test('while the settlement is reviewed: the review before it does not see it, the one after it does', async () => {
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => review(id), () => advance(id, 'P10D')])).toEqual(['awaiting_funds', 202]);
    expect(await review(id)).toBe('expired');
  });

  test('while it ends: 409, and the clock stays', async () => {
    const id = await steps.waiting(BY_WIRE);
    const end = await endOf(id);
    expect(await inOrder(id, [() => review(id, end), () => advance(id, 'P1D')])).toEqual(['expired', 409]);
    expect((await steps.stored(id)).clockOffsetMs).toBe(0);
  });

  test('while evidence is committed: the evidence is dated by the clock as it was moved before', async () => {
    const id = await steps.waiting(BY_WIRE);
    expect(await inOrder(id, [() => advance(id, 'P9D'), () => pay(id)])).toEqual([202, true]);
    expect(await review(id)).toBe('funded');
    const [received] = await api.connection.db.select().from(evidence).where(eq(evidence.settlementId, id));
    expect((received?.receivedAt.getTime() ?? 0) - Date.now()).toBeGreaterThan(8.9 * 86_400_000);
  });
});

describe('evidence of internal funding', () => {
  test('is dated by the clock of the settlement, once', async () => {
    const id = await steps.acceptInternal();
    await advance(id, 'P5D');
    await steps.activities.admitSettlement(steps.step(id));
    const [funding] = await api.connection.db.select().from(evidence).where(eq(evidence.settlementId, id));
    expect(Math.round(((funding?.receivedAt.getTime() ?? 0) - Date.now()) / 86_400_000)).toBe(5);
  });
});
