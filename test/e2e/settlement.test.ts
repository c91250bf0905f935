import { setTimeout as delay } from 'node:timers/promises';
import { count, eq } from 'drizzle-orm';
import Stripe from 'stripe';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { certificates, evidence, outbox, postings, providerEvents, settlements } from '../../db/schema/index.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { type Caller, TEST_SECRETS } from '../support/api.ts';
import { historyText } from '../support/history.ts';
import { createRecipient, type Json, jsonOf, readSettlement, settleBody, untilStatus } from '../support/partner.ts';
import { startStack, type TestStack } from '../support/stack.ts';

let stack: TestStack;
let caller: Caller;

beforeAll(async () => {
  stack = await startStack();
  caller = await stack.api.createCaller();
});
afterAll(() => stack.close());

const post = (body: unknown, key: string = crypto.randomUUID()) =>
  stack.api.call(caller, 'POST', '/v2/settle', body, { 'idempotency-key': key });

const settle = async (
  overrides: Record<string, unknown> = {},
  recipient: Record<string, unknown> = {},
): Promise<Json> => {
  const answer = await post(settleBody(await createRecipient(stack, caller, recipient), overrides));
  expect(answer.statusCode, answer.body).toBe(202);
  return jsonOf(answer);
};

const statuses = (settlement: Json): string[] => settlement.timeline.map((entry: { status: string }) => entry.status);
const exceptions = (settlement: Json): string[] => settlement.exceptions.map((entry: { type: string }) => entry.type);
const rows = async (table: typeof postings | typeof certificates | typeof evidence, settlementId: string) =>
  (await stack.api.connection.db.select({ count: count() }).from(table).where(eq(table.settlementId, settlementId)))[0]
    ?.count;

/** Balances of a settlement's accounts, in minor units. */
const balances = async (settlementId: string): Promise<Record<string, bigint>> => {
  const lines = await stack.api.connection.db.select().from(postings).where(eq(postings.settlementId, settlementId));
  const totals: Record<string, bigint> = {};
  for (const { account, currency, amountMinor } of lines)
    totals[`${account} ${currency}`] = (totals[`${account} ${currency}`] ?? 0n) + amountMinor;
  return totals;
};

const signed = (event: Record<string, unknown>, options: { secret?: string; at?: number } = {}) => {
  const payload = JSON.stringify(event);
  const timestamp = options.at ?? Math.floor(Date.now() / 1_000);
  const header = Stripe.webhooks.generateTestHeaderString({
    payload,
    secret: options.secret ?? TEST_SECRETS.cardproc,
    timestamp,
  });
  return stack.api.call(null, 'POST', '/v2/webhooks/cardproc', payload, { 'cardproc-signature': header });
};

const paid = (settlementId: string, amountReceived: number, currency = 'usd') => ({
  id: `evt_${crypto.randomUUID()}`,
  object: 'event',
  type: 'payment_intent.succeeded',
  created: Math.floor(Date.now() / 1_000),
  livemode: false,
  data: {
    object: {
      object: 'payment_intent',
      amount_received: amountReceived,
      currency,
      metadata: { settlement_id: settlementId },
    },
  },
});

describe('a card settlement', () => {
  test('tok_visa: accepted to settled, certified, every account where it belongs', async () => {
    const { settlement_id: id } = await settle();
    const settled = await untilStatus(stack, caller, id, 'settled');
    expect(statuses(settled)).toEqual(['accepted', 'awaiting_funds', 'funded', 'paying_out', 'settled']);
    expect(settled).toMatchObject({
      amount_received: '250.00',
      failure: null,
      exceptions: [],
      expires_at: null,
      workflow_id: `settlement:${id}`,
    });
    expect(settled.certificate_id).toMatch(/^CERT-[0-9A-F]{32}$/);
    expect(await rows(certificates, id)).toBe(1);
    expect(await balances(id)).toEqual({
      'card_clearing USD': 25_000n,
      'settlement_funds USD': 0n,
      'payout_in_transit USD': 0n,
      'input_fee_income USD': -755n,
      'platform_fee_income USD': -188n,
      'fx_position USD': -24_057n,
      'fx_position JMD': 3_782_963n,
      'payout_paid JMD': -3_782_963n,
    });
  });

  test('tok_declined: failed with card_declined, and nothing was booked', async () => {
    const { settlement_id: id } = await settle({ card_token: 'tok_declined' });
    const failed = await untilStatus(stack, caller, id, 'failed');
    expect(failed.failure.code).toBe('card_declined');
    expect(statuses(failed)).toEqual(['accepted', 'awaiting_funds', 'failed']);
    expect(await rows(postings, id)).toBe(0);
  });

  test('tok_partial: two parts add up and settle once', async () => {
    const { settlement_id: id } = await settle({ card_token: 'tok_partial' });
    const settled = await untilStatus(stack, caller, id, 'settled');
    expect(settled.amount_received).toBe('250.00');
    expect(await rows(evidence, id)).toBe(3);
  });

  test('tok_dispute: settled, then the dispute is recorded and changes no state', async () => {
    const { settlement_id: id } = await settle({ card_token: 'tok_dispute' });
    await untilStatus(stack, caller, id, 'settled');
    await expect
      .poll(async () => exceptions(await readSettlement(stack, caller, id)), { timeout: 10_000 })
      .toEqual(['disputed']);
    expect((await readSettlement(stack, caller, id)).status).toBe('settled');
  });

  test('a sanctioned name is rejected before anything is collected', async () => {
    const { settlement_id: id } = await settle({}, { name: 'SANCTIONED Person' });
    const rejected = await untilStatus(stack, caller, id, 'rejected');
    expect(rejected.failure.code).toBe('screening_hit');
    expect(await rows(evidence, id)).toBe(0);
  });

  test('a refused payout fails and books everything held as due back', async () => {
    const { settlement_id: id } = await settle({}, { name: 'PAYOUT REFUSED' });
    const failed = await untilStatus(stack, caller, id, 'failed');
    expect(failed.failure.code).toBe('payout_refused');
    expect(failed.certificate_id).toBeNull();
    expect(await balances(id)).toEqual({
      'card_clearing USD': 25_000n,
      'settlement_funds USD': 0n,
      'payout_in_transit USD': 0n,
      'refund_due USD': -25_000n,
    });
  });

  test('canceled while it waits: 200, a second cancel 409, and money that comes later is due back', async () => {
    const { settlement_id: id } = await settle({ card_token: 'tok_manual' });
    await untilStatus(stack, caller, id, 'awaiting_funds');
    const canceled = await stack.api.call(caller, 'POST', `/v2/settle/${id}/cancel`);
    expect([canceled.statusCode, jsonOf(canceled).status]).toEqual([200, 'canceled']);
    const again = await stack.api.call(caller, 'POST', `/v2/settle/${id}/cancel`);
    expect(jsonOf(again)).toMatchObject({ status: 409, code: 'state_conflict', current_state: 'canceled' });
    expect(jsonOf(await signed(paid(id, 25_000)))).toMatchObject({ matched: true });
    expect(exceptions(await readSettlement(stack, caller, id))).toEqual(['late_evidence']);
    expect(await balances(id)).toEqual({ 'card_clearing USD': 25_000n, 'refund_due USD': -25_000n });
  });

  test('Prefer: wait answers when the status changes, and says that it waited', async () => {
    const { settlement_id: id } = await settle();
    const answer = await stack.api.call(caller, 'GET', `/v2/settle/${id}`, undefined, { prefer: 'wait=20' });
    expect(answer.headers['preference-applied']).toBe('wait=20');
    expect(jsonOf(answer).timeline.length).toBeGreaterThan(1);
  });

  test('the legacy Caribbean route settles without input money and without an input fee', async () => {
    const recipientId = await createRecipient(stack, caller);
    const { payment_method: _method, card_token: _token, ...body } = settleBody(recipientId);
    const answer = await stack.api.call(caller, 'POST', '/v1/caribbean/settle', body);
    expect(answer.statusCode, answer.body).toBe(201);
    const settled = await untilStatus(stack, caller, jsonOf(answer).settlement_id, 'settled');
    expect(settled).toMatchObject({ input_fee: '0.00', payment_method: 'internal' });
    const list = await stack.api.call(caller, 'GET', '/v1/caribbean/settlements?limit=1');
    expect(list.statusCode, list.body).toBe(200);
    expect(jsonOf(list)[0].settlement_id).toBe(settled.settlement_id);
  });
});

describe('an idempotency key', () => {
  test('40 identical concurrent requests: 40 byte-identical 202s, one settlement, one workflow, one set of postings', async () => {
    const body = settleBody(await createRecipient(stack, caller));
    const key = crypto.randomUUID();
    const answers = await Promise.all(Array.from({ length: 40 }, () => post(body, key)));
    expect(new Set(answers.map((answer) => answer.statusCode))).toEqual(new Set([202]));
    expect(new Set(answers.map((answer) => answer.body)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers['idempotency-replayed'] === 'true')).toHaveLength(39);
    const id = jsonOf(answers[0] ?? expect.fail('no answer')).settlement_id;
    await untilStatus(stack, caller, id, 'settled');
    expect(
      (await stack.api.connection.db.select().from(settlements).where(eq(settlements.recipientId, body.recipient_id)))
        .length,
    ).toBe(1);
    expect(await rows(certificates, id)).toBe(1);
    expect(await rows(postings, id)).toBe(12);
    const started = async () =>
      (await stack.temporal.workflow.count(`WorkflowId = "${settlementWorkflowId(id)}"`)).count;
    await expect.poll(started, { timeout: 10_000 }).toBe(1);
  });

  test('409 for another command, naming the fields that differ, and nothing changes', async () => {
    const recipientId = await createRecipient(stack, caller);
    const key = crypto.randomUUID();
    expect((await post(settleBody(recipientId), key)).statusCode).toBe(202);
    const other = await post(settleBody(recipientId, { amount: '250.01', card_token: 'tok_declined' }), key);
    expect(jsonOf(other)).toMatchObject({
      status: 409,
      code: 'idempotency_key_reused',
      mismatch: ['amount', 'card_token'],
    });
    const bytesOnly = await post(`${JSON.stringify(settleBody(recipientId))} `, key);
    expect(jsonOf(bytesOnly)).toMatchObject({ status: 409, mismatch: [] });
  });

  test('answers the same after the recipient was deactivated and the workflow history was deleted', async () => {
    const recipientId = await createRecipient(stack, caller);
    const key = crypto.randomUUID();
    const first = await post(settleBody(recipientId), key);
    const id = jsonOf(first).settlement_id;
    await untilStatus(stack, caller, id, 'settled');
    await stack.api.call(caller, 'DELETE', `/v1/recipients/${recipientId}`);
    const { workflowService } = stack.temporal.connection;
    const execution = { workflowId: settlementWorkflowId(id) };
    await stack.temporal.workflow.getHandle(execution.workflowId).result();
    await workflowService.deleteWorkflowExecution({ namespace: stack.namespace, workflowExecution: execution });
    await expect
      .poll(
        () =>
          stack.temporal.workflow
            .getHandle(execution.workflowId)
            .describe()
            .then(
              () => 'there',
              () => 'gone',
            ),
        { timeout: 60_000, interval: 500 },
      )
      .toBe('gone');
    const again = await post(settleBody(recipientId), key);
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([202, first.body, 'true']);
    expect(await rows(certificates, id)).toBe(1);
  }, 90_000);

  test('a refused request does not bind its key', async () => {
    const key = crypto.randomUUID();
    expect((await post(settleBody(crypto.randomUUID()), key)).statusCode).toBe(404);
    expect((await post(settleBody(await createRecipient(stack, caller)), key)).statusCode).toBe(202);
  });
});

describe('the card processor webhook', () => {
  test("events signed by the stripe package's own generator are accepted, applied once, and known again", async () => {
    const { settlement_id: id } = await settle({ card_token: 'tok_manual' });
    const event = paid(id, 25_000);
    expect(jsonOf(await signed(event))).toEqual({
      received: true,
      event_id: event.id,
      duplicate: false,
      matched: true,
    });
    expect(jsonOf(await signed(event))).toEqual({ received: true, event_id: event.id, duplicate: true, matched: true });
    await untilStatus(stack, caller, id, 'settled');
    expect(await rows(postings, id)).toBe(12);
  });

  test('401 for tampered, late, early, unsigned and doubled signatures, and nothing is stored', async () => {
    const { db } = stack.api.connection;
    const before = (await db.select({ count: count() }).from(providerEvents))[0]?.count;
    const event = paid('stl_none', 100);
    const now = Math.floor(Date.now() / 1_000);
    const unsigned = await stack.api.call(null, 'POST', '/v2/webhooks/cardproc', event);
    const header = Stripe.webhooks.generateTestHeaderString({
      payload: JSON.stringify(event),
      secret: TEST_SECRETS.cardproc,
    });
    const tampered = await stack.api.call(
      null,
      'POST',
      '/v2/webhooks/cardproc',
      { ...event, livemode: true },
      { 'cardproc-signature': header },
    );
    const answers = [
      unsigned,
      tampered,
      await signed(event, { at: now - 301 }),
      await signed(event, { at: now + 302 }),
      await signed(event, { secret: 'x'.repeat(32) }),
    ];
    for (const answer of answers) expect(jsonOf(answer)).toMatchObject({ status: 401, code: 'signature_invalid' });
    expect((await db.select({ count: count() }).from(providerEvents))[0]?.count).toBe(before);
  });

  test('409 for a known event id with other bytes', async () => {
    const event = paid('stl_none', 100);
    expect(jsonOf(await signed(event))).toMatchObject({ matched: false });
    expect(jsonOf(await signed({ ...event, created: 1 }))).toMatchObject({
      status: 409,
      code: 'provider_event_conflict',
    });
  });

  test('live events, unknown types and unnamed settlements are stored and applied to nothing', async () => {
    const { settlement_id: id } = await settle({ card_token: 'tok_manual' });
    await untilStatus(stack, caller, id, 'awaiting_funds');
    for (const event of [
      { ...paid(id, 25_000), livemode: true },
      { ...paid(id, 25_000), type: 'charge.captured' },
      paid('stl_unknown', 25_000),
    ]) {
      expect(jsonOf(await signed(event))).toMatchObject({ received: true, matched: false });
    }
    expect((await readSettlement(stack, caller, id)).amount_received).toBe('0.00');
  });

  test('too much funds and is recorded as overpaid; another currency is recorded and not applied', async () => {
    const { settlement_id: id } = await settle({ card_token: 'tok_manual' });
    await untilStatus(stack, caller, id, 'awaiting_funds');
    await signed(paid(id, 25_000, 'eur'));
    await signed(paid(id, 26_000));
    const settled = await untilStatus(stack, caller, id, 'settled');
    expect(exceptions(settled)).toEqual(['currency_mismatch', 'overpaid']);
    expect(settled.amount_received).toBe('260.00');
    expect((await balances(id))['refund_due USD']).toBe(-1_000n);
  });
});

describe('what Temporal keeps of a settlement', () => {
  test('at most 6 workflow tasks and 40 events, telling its story, with nothing personal in them', async () => {
    const name = 'Zebedee Uniquename';
    const accountNumber = 'ZX99887766';
    const { settlement_id: id } = await settle(
      { reference: 'Invoice-Secret-77' },
      { name, bank_details: { bank_name: 'Bank of Somewhere', account_number: accountNumber, currency: 'JMD' } },
    );
    await untilStatus(stack, caller, id, 'settled');
    const handle = stack.temporal.workflow.getHandle(settlementWorkflowId(id));
    await handle.result();
    const history = await handle.fetchHistory();
    const tasks = (history.events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
    expect(tasks.length).toBeLessThanOrEqual(6);
    expect(history.events?.length).toBeLessThanOrEqual(40);
    const text = historyText(history);
    for (const secret of [
      name,
      accountNumber,
      'Bank of Somewhere',
      'Invoice-Secret-77',
      'tok_visa',
      TEST_SECRETS.cardproc,
    ])
      expect(text).not.toContain(secret);
    expect(text).toContain('Waiting for card evidence');
    expect(text).toContain('Send the payout');
    expect(text).toContain(id);
  });
});

describe('when a part is away', () => {
  test('without a worker: still 202, and it settles once a worker is back', async () => {
    await stack.stopWorker();
    const { settlement_id: id } = await settle();
    await delay(300);
    expect((await readSettlement(stack, caller, id)).status).toBe('accepted');
    await stack.startWorker();
    await untilStatus(stack, caller, id, 'settled');
  });

  test('evidence that came before its settlement waits for it is applied when it does', async () => {
    await stack.stopWorker();
    const { settlement_id: id } = await settle({ card_token: 'tok_manual' });
    expect(jsonOf(await signed(paid(id, 25_000)))).toMatchObject({ matched: true });
    await stack.startWorker();
    await untilStatus(stack, caller, id, 'settled');
  });

  test('the outbox is empty once everything was dispatched', async () => {
    await expect
      .poll(async () => (await stack.api.connection.db.select({ count: count() }).from(outbox))[0]?.count, {
        timeout: 10_000,
      })
      .toBe(0);
  });
});
