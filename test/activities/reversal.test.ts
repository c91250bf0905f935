/** What the payer's bank takes back before the payout is not paid out, and is not due back a second time (contract §6). */
import { describe, expect } from 'vitest';
import type { TestApi } from '../support/api.ts';
import { bankledgerBody, sendBankledger } from '../support/bankledger.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { withApi } from '../support/fixture.ts';
import type { Json } from '../support/partner.ts';
import { BY_MANUAL_CARD, BY_WIRE } from '../support/settlement.ts';
import { complete, openVerification } from '../support/verification.ts';

const test = withApi();

/** Above the threshold from which the recipient must be verified. */
const HELD = { ...BY_WIRE, amount: '2000.00' } as const;

const wire = (api: TestApi, id: string, amount_reconciled: number) =>
  sendBankledger(api, bankledgerBody(id, { amount_reconciled }));
const giveBack = (api: TestApi, id: string, amount_reconciled = 0) =>
  sendBankledger(api, bankledgerBody(id, { amount_reconciled, return_code: 'R10' }, 'returned'));

const moneyOf = ({ status, failure, amount_received, amount_refund_due }: Json) => ({
  status,
  code: failure?.code ?? null,
  amount_received,
  amount_refund_due,
});

describe('a return before the payout', () => {
  test('fails the settlement once awaiting_funds is reached, if all the money is returned during a hold', async ({
    api,
    partner,
    steps,
  }) => {
    const id = await steps.waiting(HELD);
    await wire(api, id, 200_000);
    await giveBack(api, id);
    expect(moneyOf(await steps.read(id))).toEqual({
      status: 'compliance_hold',
      code: null,
      amount_received: '0.00',
      amount_refund_due: '0.00',
    });
    const { recipientId } = await steps.stored(id);
    const { verification_id } = await openVerification(api, partner, recipientId);
    await complete(api, partner, verification_id, { status: 'verified' });
    await steps.activities.reviewSettlement(steps.step(id));
    const failed = await steps.read(id);
    expect(failed.timeline.map(({ status }: Json) => status)).toEqual([
      'accepted',
      'compliance_hold',
      'awaiting_funds',
      'failed',
    ]);
    expect(moneyOf(failed)).toEqual({
      status: 'failed',
      code: 'payment_returned',
      amount_received: '0.00',
      amount_refund_due: '0.00',
    });
    expect(failed.exceptions).toMatchObject([{ type: 'returned', amount: '2000.00', currency: 'USD', reason: 'R10' }]);
  });

  test('leaves the rest due back if a part is returned, and never more than what is held', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await wire(api, id, 10_000);
    await giveBack(api, id, 4_000);
    await steps.activities.reviewSettlement(steps.step(id));
    const ended = { status: 'failed', code: 'payment_returned' };
    expect(moneyOf(await steps.read(id))).toEqual({ ...ended, amount_received: '60.00', amount_refund_due: '60.00' });
    await giveBack(api, id, 10_000);
    const twice = await steps.read(id);
    expect(moneyOf(twice)).toEqual({ ...ended, amount_received: '0.00', amount_refund_due: '0.00' });
    expect(twice.exceptions.map(({ type, amount }: Json) => [type, amount])).toEqual([
      ['returned', '40.00'],
      ['returned', '60.00'],
    ]);
  });

  test('committed before the payout begins is seen by it: nothing is sent', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await wire(api, id, 25_000);
    await giveBack(api, id);
    expect(await steps.activities.sendPayout(steps.step(id))).toMatchObject({
      status: 'failed',
      failureCode: 'payment_returned',
    });
  });

  test('decides against a cancel in awaiting_funds, which is 409', async ({ api, partner, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    await wire(api, id, 10_000);
    await giveBack(api, id);
    expect((await api.call(partner, 'POST', `/v2/settle/${id}/cancel`)).statusCode).toBe(409);
  });
});

test('a dispute before the payout fails the settlement as payment_disputed', async ({ api, steps }) => {
  const id = await steps.waiting(BY_MANUAL_CARD);
  await sendCardproc(api, cardprocBody(id, { amount_received: 10_000 }));
  await sendCardproc(api, cardprocBody(id, { amount: 25_000 }, 'charge.dispute.created'));
  await steps.activities.reviewSettlement(steps.step(id));
  const failed = await steps.read(id);
  expect(moneyOf(failed)).toEqual({
    status: 'failed',
    code: 'payment_disputed',
    amount_received: '0.00',
    amount_refund_due: '0.00',
  });
  expect(failed.exceptions).toMatchObject([{ type: 'disputed', amount: '100.00' }]);
});

describe('a return during the payout', () => {
  test('changes no state, and takes only from what is due back', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE, { name: 'PAYOUT PENDING' });
    await wire(api, id, 32_000);
    await steps.activities.sendPayout(steps.step(id));
    await giveBack(api, id);
    expect(moneyOf(await steps.read(id))).toEqual({
      status: 'paying_out',
      code: null,
      amount_received: '250.00',
      amount_refund_due: '0.00',
    });
  });

  test('is not due back when the rail refuses the payout', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE, { name: 'PAYOUT PENDING' });
    await wire(api, id, 25_000);
    await steps.activities.sendPayout(steps.step(id));
    await giveBack(api, id, 20_000);
    await steps.answerPayout(id, 'payout_refused');
    await steps.activities.reviewSettlement(steps.step(id));
    expect(moneyOf(await steps.read(id))).toEqual({
      status: 'failed',
      code: 'payout_refused',
      amount_received: '50.00',
      amount_refund_due: '50.00',
    });
  });
});

test('an event of amount 0 is recorded, and sends no settlement.funds_received', async ({ api, steps }) => {
  const id = await steps.waiting(BY_WIRE);
  await wire(api, id, 0);
  const { rows } = await api.connection.pool.query('SELECT type FROM events WHERE object_id = $1 ORDER BY sequence', [
    id,
  ]);
  expect(rows.map(({ type }) => type)).toEqual(['settlement.accepted', 'settlement.awaiting_funds']);
});
