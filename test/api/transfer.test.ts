/**
 * A consumer's transfers (contract §12): settlements with transfer ids and with the consumer's own idempotency keys.
 */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { outbox, settlements } from '../../db/schema/index.ts';
import { PAGE } from '../../domain/page.ts';
import type { TestApi } from '../support/api.ts';
import {
  type ConsumerCaller,
  callAs,
  createConsumerRecipient,
  createQuote,
  signIn,
  transfer,
  transferBody,
} from '../support/consumer.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settleBody } from '../support/partner.ts';
import { expectInvalid, expectRefused, faultsOf } from '../support/refusal.ts';
import { fillSettlements } from '../support/settlement-fill.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const test = withApi()
  .extend('consumer', FILE, ({ api }) => signIn(api))
  .extend('recipientId', FILE, ({ api, consumer }) => createConsumerRecipient(api, consumer));

const quoted = (recipientId: string, quoteId: string, overrides: Record<string, unknown> = {}) => ({
  quote_id: quoteId,
  recipient_id: recipientId,
  card_token: 'tok_visa',
  ...overrides,
});
const read = (api: TestApi, caller: ConsumerCaller, transferId: string) =>
  callAs(api, caller, 'GET', `/consumer/transfers/${transferId}`);

describe('POST /consumer/transfers refuses', () => {
  test.for<[string, (recipientId: string) => unknown, [string, string][]]>([
    [
      'neither a quote nor its inputs',
      (recipientId) => ({ recipient_id: recipientId, card_token: 'tok_visa' }),
      [
        ['body.corridor', 'missing'],
        ['body.amount', 'missing'],
        ['body.payment_method', 'missing'],
      ],
    ],
    [
      'a quote and its inputs',
      (recipientId) => transferBody(recipientId, { quote_id: newId(), payout_rail: 'bank_transfer' }),
      [
        ['body.corridor', 'value_error'],
        ['body.amount', 'value_error'],
        ['body.payment_method', 'value_error'],
        ['body.payout_rail', 'value_error'],
      ],
    ],
    [
      'a token of another method',
      (recipientId) => transferBody(recipientId, { payment_method: 'wire' }),
      [['body.card_token', 'value_error']],
    ],
    [
      'an amount that is too small and an unknown field',
      (recipientId) => transferBody(recipientId, { amount: '0.01', more: 1 }),
      [
        ['body.more', 'extra_forbidden'],
        ['body.amount', 'value_error'],
      ],
    ],
    [
      'an unknown account token',
      (recipientId) =>
        transferBody(recipientId, { payment_method: 'ach', card_token: null, banklink_account_token: 'x' }),
      [['body.banklink_account_token', 'value_error']],
    ],
    [
      "a recipient of another country than the corridor's",
      (recipientId) => transferBody(recipientId, { corridor: 'US-TT' }),
      [['body.recipient_id', 'value_error']],
    ],
  ])('422 for %s, and nothing is written', async ([_case, body, faults], { api, consumer, recipientId }) => {
    await expectInvalid(api, () => transfer(api, consumer, body(recipientId)), faults);
  });

  test("422 for a token of another method than the quote's", async ({ api, consumer, recipientId }) => {
    const card = await createQuote(api, consumer);
    const wire = await createQuote(api, consumer, { payment_method: 'wire' });
    expect(
      faultsOf(await transfer(api, consumer, quoted(recipientId, card.quote_id, { card_token: undefined }))),
    ).toEqual([['body.card_token', 'missing']]);
    expect(faultsOf(await transfer(api, consumer, quoted(recipientId, wire.quote_id)))).toEqual([
      ['body.card_token', 'value_error'],
    ]);
    const both = await transfer(api, consumer, quoted(recipientId, card.quote_id, { banklink_account_token: 'x' }));
    expect(faultsOf(both)).toEqual([['body.banklink_account_token', 'value_error']]);
  });
});

describe('POST /consumer/transfers', () => {
  test('201 with a transfer id, an outbox row and a Location that can be read', async ({
    api,
    consumer,
    recipientId,
  }) => {
    const answer = await transfer(api, consumer, transferBody(recipientId, { reference: 'School fees' }));
    expect(answer.statusCode).toBe(201);
    const made = jsonOf(answer);
    expect(made).toMatchObject({
      transfer_id: expect.stringMatching(UUID_V7),
      settlement_id: expect.stringMatching(/^stl_[a-z2-7]{32}$/),
      status: 'accepted',
      amount: '250.00',
      destination_amount: '37829.63',
      payment_method: 'card',
      payout_rail: 'bank_transfer',
      reference: 'School fees',
      recipient_id: recipientId,
      simulation: true,
      timeline: [{ status: 'accepted', at: made.created_at }],
      amount_received: '0.00',
      failure: null,
    });
    expect(answer.headers['location']).toBe(`/consumer/transfers/${made.transfer_id}`);
    const reread = await read(api, consumer, made.transfer_id);
    expect([reread.statusCode, jsonOf(reread), reread.headers['retry-after']]).toEqual([200, made, '1']);
    const started = await api.connection.db.select().from(outbox).where(eq(outbox.objectId, made.settlement_id));
    expect(started).toEqual([
      expect.objectContaining({
        kind: 'settlement',
        context: { orgId: consumer.consumerId, corridor: 'US-JM', paymentMethod: 'card' },
      }),
    ]);
    expect(JSON.stringify(made)).not.toContain(consumer.consumerId);
    expect(made).not.toHaveProperty('metadata');
  });

  test('201 by a quote with its inputs, including the rail', async ({ api, consumer, recipientId }) => {
    const quote = await createQuote(api, consumer, { amount: '99.5', payment_method: 'card' });
    const answer = await transfer(api, consumer, quoted(recipientId, quote.quote_id));
    expect(answer.statusCode).toBe(201);
    const same = ['corridor', 'amount', 'payment_method', 'payout_rail', 'total_fees', 'fx_rate', 'destination_amount'];
    const pick = (from: Json) => same.map((field) => from[field]);
    expect(pick(jsonOf(answer))).toEqual(pick(quote));
  });

  test('201 twice by an expired quote, with its inputs', async ({ api, clock, consumer, recipientId }) => {
    const quote = await createQuote(api, consumer);
    clock.advance(31_000);
    const answers = [
      await transfer(api, consumer, quoted(recipientId, quote.quote_id)),
      await transfer(api, consumer, quoted(recipientId, quote.quote_id)),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([201, 201]);
    expect(new Set(answers.map((answer) => jsonOf(answer).transfer_id)).size).toBe(2);
  });
});

describe("a transfer's idempotency key", () => {
  test('409 with the fields that differ for another command, before its objects are read', async ({
    api,
    consumer,
    recipientId,
  }) => {
    const key = crypto.randomUUID();
    await transfer(api, consumer, transferBody(recipientId), key);
    const changed = transferBody(recipientId, { amount: '251.00', card_token: 'tok_declined' });
    await expectRefused(api, () => transfer(api, consumer, changed, key), 409, {
      code: 'idempotency_key_reused',
      mismatch: ['amount', 'card_token'],
    });
    await expectRefused(api, () => transfer(api, consumer, quoted(recipientId, newId()), key), 409, {
      mismatch: ['amount', 'corridor', 'payment_method', 'quote_id'],
    });
  });

  test('is free for another consumer and for a partner', async ({ api, consumer, recipientId }) => {
    const [other, partner] = [await signIn(api), await api.createCaller()];
    const key = crypto.randomUUID();
    const answers = [
      await transfer(api, consumer, transferBody(recipientId), key),
      await transfer(api, other, transferBody(await createConsumerRecipient(api, other)), key),
      await api.call(partner, 'POST', '/v2/settle', settleBody(await createRecipient(api, partner)), {
        'idempotency-key': key,
      }),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([201, 201, 202]);
    expect(new Set(answers.map((answer) => jsonOf(answer).settlement_id)).size).toBe(3);
  });
});

describe('reading transfers', () => {
  test('a read with Prefer: wait is answered by the change of the transfer', async ({ api, consumer, recipientId }) => {
    const { transfer_id: id } = jsonOf(await transfer(api, consumer, transferBody(recipientId)));
    const waiting = callAs(api, consumer, 'GET', `/consumer/transfers/${id}`, undefined, { prefer: 'wait=20' });
    expect((await callAs(api, consumer, 'POST', `/consumer/transfers/${id}/cancel`)).statusCode).toBe(200);
    const answer = await waiting;
    expect([jsonOf(answer).status, answer.headers['preference-applied']]).toEqual(['canceled', 'wait=20']);
  });

  test("404 with the same body for another consumer's transfer, a settlement id and unknown ids", async ({
    api,
    consumer,
    recipientId,
  }) => {
    const other = await signIn(api);
    const made = jsonOf(await transfer(api, consumer, transferBody(recipientId)));
    const oneDigitOff = made.transfer_id.replace(/.$/, (digit: string) => (digit === '0' ? '1' : '0'));
    const answers = [
      await read(api, other, made.transfer_id),
      ...(await Promise.all(
        [
          made.settlement_id,
          oneDigitOff,
          made.transfer_id.toUpperCase(),
          newId(),
          'x',
          'ffffffff-ffff-7fff-bfff-ffffffffffff',
        ].map((id) => read(api, consumer, id)),
      )),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 404));
    const bodyOf = (answer: (typeof answers)[number]) => {
      const { request_id: _requestId, instance: _instance, ...same } = jsonOf(answer);
      return JSON.stringify(same);
    };
    expect(new Set(answers.map(bodyOf)).size).toBe(1);
  });

  test('200 with the right one of two transfers of the same millisecond', async ({ api }) => {
    const caller = await signIn(api);
    const body = transferBody(await createConsumerRecipient(api, caller));
    const made = [jsonOf(await transfer(api, caller, body)), jsonOf(await transfer(api, caller, body))];
    const moment = new Date('2026-11-21T08:00:00.123Z');
    await api.owner.db.update(settlements).set({ createdAt: moment }).where(eq(settlements.orgId, caller.consumerId));
    const listed = jsonOf(await callAs(api, caller, 'GET', '/consumer/transfers'));
    expect(new Set(listed.map((each: Json) => each.transfer_id.slice(0, 13))).size).toBe(1);
    for (const each of listed)
      expect(jsonOf(await read(api, caller, each.transfer_id)).settlement_id).toBe(each.settlement_id);
    expect(new Set(listed.map((each: Json) => each.settlement_id))).toEqual(
      new Set(made.map((each) => each.settlement_id)),
    );
  });

  test('200 with every transfer, beyond what one statement reads, in their order', async ({ api }) => {
    const caller = await signIn(api);
    const made = jsonOf(await transfer(api, caller, transferBody(await createConsumerRecipient(api, caller))));
    const { pool } = api.owner;
    await fillSettlements(pool, api.deps.sealer, {
      orgId: caller.consumerId,
      templateId: made.settlement_id,
      settlements: 2 * PAGE.limitMax + 1,
      columns: { created_at: "created_at - n * interval '1 second'" },
    });
    const listed: Json[] = jsonOf(await callAs(api, caller, 'GET', '/consumer/transfers'));
    const dates = listed.map((each) => Date.parse(each.created_at));
    expect([listed.length, new Set(listed.map((each) => each.transfer_id)).size]).toEqual([202, 202]);
    expect(dates).toEqual(dates.toSorted((a, b) => b - a));
  });

  test("200 with the consumer's own transfers, newest first", async ({ api }) => {
    const caller = await signIn(api);
    const id = await createConsumerRecipient(api, caller);
    const ids: string[] = [];
    for (let each = 0; each < 3; each += 1) ids.push(jsonOf(await transfer(api, caller, transferBody(id))).transfer_id);
    const answer = await callAs(api, caller, 'GET', '/consumer/transfers');
    expect([answer.statusCode, answer.headers['x-total-count']]).toEqual([200, '3']);
    expect(jsonOf(answer).map((each: Json) => each.transfer_id)).toEqual(ids.reverse());
    expect(jsonOf(answer)[0]).toEqual(jsonOf(await read(api, caller, ids[0] ?? '')));
  });
});
