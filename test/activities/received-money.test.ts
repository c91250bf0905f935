/** Every cent that comes in is paid out, or shown as due back, in whatever state it arrives (contract §6). */
import { describe, expect } from 'vitest';
import type { TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { BY_WIRE, type Steps } from '../support/settlement.ts';

const test = withApi();

/** Above the threshold from which the recipient must be verified. */
const HELD = { ...BY_WIRE, amount: '2000.00' } as const;

const wire = async (api: TestApi, settlementId: string, amountMinor: number): Promise<void> => {
  const answer = await sendBankledger(api, bankledgerBody(settlementId, { amount_reconciled: amountMinor }));
  expect(answer.json()).toMatchObject({ received: true, matched: true });
};

const accountsOf = async (api: TestApi, settlementId: string): Promise<Record<string, number>> => {
  const { rows } = await api.connection.pool.query<{ account: string; minor: string }>(
    'SELECT account, sum(amount_minor) AS minor FROM postings WHERE settlement_id = $1 GROUP BY account',
    [settlementId],
  );
  return Object.fromEntries(rows.map(({ account, minor }) => [account, Number(minor)]).filter(([, minor]) => minor));
};

const typesOf = async (api: TestApi, settlementId: string): Promise<string[]> => {
  const { rows } = await api.connection.pool.query<{ type: string }>(
    'SELECT type FROM events WHERE object_id = $1 ORDER BY sequence',
    [settlementId],
  );
  return rows.map(({ type }) => type);
};

/** A settlement that waits for the verification of its recipient. */
const inHold = async (steps: Steps): Promise<string> => {
  const id = await steps.waiting(HELD);
  expect((await steps.stored(id)).status).toBe('compliance_hold');
  return id;
};

const moneyOf = ({ status, amount_received, amount_refund_due }: Json) => ({
  status,
  amount_received,
  amount_refund_due,
});

describe('money that arrives before the settlement waits for it', () => {
  test('never blocks a cancel, and is due back after it', async ({ api, partner, steps }) => {
    for (const amountMinor of [150_000, 200_000]) {
      const id = await inHold(steps);
      await wire(api, id, amountMinor);
      const canceled = await api.call(partner, 'POST', `/v2/settle/${id}/cancel`);
      expect(canceled.statusCode).toBe(200);
      expect(moneyOf(canceled.json())).toEqual({
        status: 'canceled',
        amount_received: `${amountMinor / 100}.00`,
        amount_refund_due: `${amountMinor / 100}.00`,
      });
      expect(await accountsOf(api, id)).toEqual({ bank_clearing: amountMinor, refund_due: -amountMinor });
    }
  });
});

describe('money that the settlement has no use for', () => {
  test('is due back, and the payout goes on, when it is too much', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await wire(api, id, 30_000);
    await steps.activities.reviewSettlement(steps.step(id));
    await steps.activities.sendPayout(steps.step(id));
    await wire(api, id, 1_000);
    const settled = await steps.read(id);
    expect(moneyOf(settled)).toEqual({ status: 'settled', amount_received: '310.00', amount_refund_due: '60.00' });
    expect((await accountsOf(api, id))['refund_due']).toBe(-6_000);
    expect(settled.exceptions).toMatchObject([
      { type: 'overpaid', amount: '50.00', currency: 'USD' },
      { type: 'late_evidence', amount: '10.00', currency: 'USD' },
    ]);
  });
});

describe('canceling a settlement', () => {
  test('200 again for a settlement that is canceled, and nothing more is written', async ({ api, partner, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    const first = await api.call(partner, 'POST', `/v2/settle/${id}/cancel`);
    const again = await api.call(partner, 'POST', `/v2/settle/${id}/cancel`);
    expect([first.statusCode, again.statusCode]).toEqual([200, 200]);
    expect(again.json()).toEqual(first.json());
  });

  test('409 while committed evidence covers the amount in awaiting_funds', async ({ api, partner, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await wire(api, id, 25_000);
    expect((await api.call(partner, 'POST', `/v2/settle/${id}/cancel`)).statusCode).toBe(409);
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

test('a payout without an answer has an event of its own when it needs a review', async ({ api, steps }) => {
  expect(await typesOf(api, await steps.inReview())).toContain('settlement.needs_review');
});
