/** Settlements over the whole service: real PostgreSQL, real Temporal and real HTTP. */
import { setTimeout as delay } from 'node:timers/promises';
import { count, eq } from 'drizzle-orm';
import Stripe from 'stripe';
import { describe, expect } from 'vitest';
import { certificates, outbox, postings, settlements } from '../../db/schema/index.ts';
import { settlementWorkflowId } from '../../domain/workflow-id.ts';
import { TEST_SECRETS } from '../support/api.ts';
import { cardprocBody } from '../support/cardproc.ts';
import { FILE, withStack } from '../support/fixture.ts';
import {
  createRecipient,
  type Json,
  jsonOf,
  readSettlement,
  settle,
  settleBody,
  untilStatus,
} from '../support/partner.ts';
import { stretched } from '../support/patience.ts';

const test = withStack().extend('world', FILE, ({ api, partner, stack }) => {
  const { db } = api.connection;
  const post = (body: unknown, key: string = crypto.randomUUID()) =>
    api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
  return {
    post,
    createRecipient: () => createRecipient(stack.api, partner),
    settle: (overrides: Record<string, unknown> = {}) => settle(api, partner, overrides),
    read: (settlementId: string): Promise<Json> => readSettlement(stack.api, partner, settlementId),
    untilStatus: (settlementId: string, status: string) => untilStatus(stack.api, partner, settlementId, status),
    rows: async (table: typeof postings | typeof certificates, settlementId: string) =>
      (await db.select({ count: count() }).from(table).where(eq(table.settlementId, settlementId)))[0]?.count,
    /** Balances of a settlement's accounts, in minor units. */
    balances: async (settlementId: string): Promise<Record<string, bigint>> => {
      const lines = await db.select().from(postings).where(eq(postings.settlementId, settlementId));
      const totals: Record<string, bigint> = {};
      for (const { account, currency, amountMinor } of lines)
        totals[`${account} ${currency}`] = (totals[`${account} ${currency}`] ?? 0n) + amountMinor;
      return totals;
    },
    /** Posts a provider event, signed by Stripe's own library. */
    signed: (event: Record<string, unknown>) => {
      const payload = JSON.stringify(event);
      const header = Stripe.webhooks.generateTestHeaderString({ payload, secret: TEST_SECRETS.cardproc });
      return api.call(null, 'POST', '/v2/webhooks/cardproc', payload, { 'cardproc-signature': header });
    },
  };
});

const statuses = (settlement: Json): string[] => settlement.timeline.map((entry: { status: string }) => entry.status);

describe('a card settlement', () => {
  test('tok_visa: accepted to settled, with a certificate and correct balances', async ({ world }) => {
    const id = await world.settle();
    const settled = await world.untilStatus(id, 'settled');
    expect(statuses(settled)).toEqual(['accepted', 'awaiting_funds', 'funded', 'paying_out', 'settled']);
    expect(settled).toMatchObject({
      amount_received: '250.00',
      failure: null,
      exceptions: [],
      expires_at: null,
      workflow_id: `settlement:${id}`,
    });
    expect(settled.certificate_id).toMatch(/^CERT-[0-9A-F]{32}$/);
    expect(await world.rows(certificates, id)).toBe(1);
    expect(await world.balances(id)).toEqual({
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

  test('the legacy Caribbean route settles without input money and without an input fee', async ({
    world,
    api,
    partner,
  }) => {
    const recipientId = await world.createRecipient();
    const { payment_method: _method, card_token: _token, ...body } = settleBody(recipientId);
    const answer = await api.call(partner, 'POST', '/v1/caribbean/settle', body);
    expect(answer.statusCode, answer.body).toBe(201);
    const settled = await world.untilStatus(jsonOf(answer).settlement_id, 'settled');
    expect(settled).toMatchObject({ input_fee: '0.00', payment_method: 'internal' });
    const list = await api.call(partner, 'GET', '/v1/caribbean/settlements?limit=1');
    expect(list.statusCode, list.body).toBe(200);
    expect(jsonOf(list)[0].settlement_id).toBe(settled.settlement_id);
  });
});

describe('an idempotency key', () => {
  test('40 identical requests at once: 40 identical 202s, one settlement, one workflow', async ({
    world,
    stack,
    api,
  }) => {
    const body = settleBody(await world.createRecipient());
    const key = crypto.randomUUID();
    const answers = await Promise.all(Array.from({ length: 40 }, () => world.post(body, key)));
    expect(new Set(answers.map((answer) => answer.statusCode))).toEqual(new Set([202]));
    expect(new Set(answers.map((answer) => answer.body)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers['idempotency-replayed'] === 'true')).toHaveLength(39);
    const id = jsonOf(answers[0] ?? expect.fail('no answer')).settlement_id;
    await world.untilStatus(id, 'settled');
    expect(
      (await api.connection.db.select().from(settlements).where(eq(settlements.recipientId, body.recipient_id))).length,
    ).toBe(1);
    expect(await world.rows(certificates, id)).toBe(1);
    expect(await world.rows(postings, id)).toBe(12);
    const started = async () =>
      (await stack.temporal.workflow.count(`WorkflowId = "${settlementWorkflowId(id)}"`)).count;
    await expect.poll(started).toBe(1);
  });

  test('gets the same answer when the recipient is deactivated and the workflow history is deleted', async ({
    world,
    stack,
    api,
    partner,
  }) => {
    const recipientId = await world.createRecipient();
    const key = crypto.randomUUID();
    const first = await world.post(settleBody(recipientId), key);
    const id = jsonOf(first).settlement_id;
    await world.untilStatus(id, 'settled');
    await api.call(partner, 'DELETE', `/v1/recipients/${recipientId}`);
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
        { timeout: stretched(60_000), interval: 500 },
      )
      .toBe('gone');
    const again = await world.post(settleBody(recipientId), key);
    expect([again.statusCode, again.body, again.headers['idempotency-replayed']]).toEqual([202, first.body, 'true']);
    expect(await world.rows(certificates, id)).toBe(1);
  });
});

describe('the card processor webhook', () => {
  test('events signed by the stripe package are accepted, and applied only once', async ({ world }) => {
    const id = await world.settle({ card_token: 'tok_manual' });
    const event = cardprocBody(id);
    for (const duplicate of [false, true])
      expect(jsonOf(await world.signed(event))).toEqual({
        received: true,
        event_id: event.id,
        duplicate,
        matched: true,
      });
    await world.untilStatus(id, 'settled');
    expect(await world.rows(postings, id)).toBe(12);
  });
});

describe('a part of the service is down', () => {
  test('202 without a worker, and the settlement settles when a worker runs again', async ({ world, stack }) => {
    await stack.stopWorker();
    const id = await world.settle();
    await delay(300);
    expect((await world.read(id)).status).toBe('accepted');
    await stack.startWorker();
    await world.untilStatus(id, 'settled');
  });

  test('the outbox is empty when everything is dispatched', async ({ api }) => {
    await expect.poll(async () => (await api.connection.db.select({ count: count() }).from(outbox))[0]?.count).toBe(0);
  });
});
