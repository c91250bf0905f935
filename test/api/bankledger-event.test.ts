import { eq } from 'drizzle-orm';
import ModernTreasury from 'modern-treasury';
import { describe, expect } from 'vitest';
import { settlementIdOf } from '../../db/id.ts';
import { evidence, outbox, postings, providerEvents } from '../../db/schema/index.ts';
import { TEST_SECRETS, type TestApi } from '../support/api.ts';
import { bankledgerBody, linkAccount, sendBankledger, signBankledger } from '../support/bankledger.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { dumpTables } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, type Json, jsonOf, settleBody } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';
import { BY_MANUAL_CARD, BY_WIRE, type Steps } from '../support/settlement.ts';

const test = withApi().extend('byAch', FILE, ({ api, partner }) => async () => ({
  payment_method: 'ach',
  card_token: undefined,
  banklink_account_token: await linkAccount(api, partner),
}));

const send = async (api: TestApi, event: object): Promise<Json> => jsonOf(await sendBankledger(api, event));
const exceptionsOf = async (steps: Steps, id: string) =>
  (await steps.read(id)).exceptions.map((exception: Json) => exception.type);
const evidenceOf = (api: TestApi, id: string) =>
  api.connection.db.select().from(evidence).where(eq(evidence.settlementId, id));

describe("the signature of a bank ledger's event", () => {
  test('401 for every invalid one, before anything is parsed or written', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    const bytes = Buffer.from(JSON.stringify(bankledgerBody(id)));
    const right = signBankledger(bytes);
    const wrong = [
      '',
      'x',
      right.slice(0, -1),
      `${right}0`,
      `sha256=${right}`,
      `${right},${right}`,
      `${right.startsWith('0') ? '1' : '0'}${right.slice(1)}`,
      right.toUpperCase(),
      Buffer.from(right, 'hex').toString('base64'),
      signBankledger(bytes, TEST_SECRETS.cardproc),
      signBankledger(bytes, ''),
      signBankledger(Buffer.from(`${bytes} `)),
      signBankledger(Buffer.from(bytes.toString().replace('25000', '25001'))),
    ];
    for (const signature of wrong) {
      const problem = await expectRefused(api, () => sendBankledger(api, bytes, { 'x-signature': signature }), 401);
      expect(problem.code).toBe('signature_invalid');
    }
    await expectRefused(api, () => api.call(null, 'POST', '/v2/webhooks/bankledger', bytes), 401);
    await expectRefused(api, () => sendBankledger(api, Buffer.from('no json'), { 'x-signature': right }), 401);
  });

  test("200 for a signature made by the provider's own package, which also accepts ours", async ({ api }) => {
    const { webhooks } = new ModernTreasury({
      apiKey: 'none',
      organizationID: 'none',
      webhookKey: TEST_SECRETS.bankledger,
    });
    const payload = JSON.stringify(bankledgerBody('stl_none'));
    const answer = await sendBankledger(api, Buffer.from(payload), { 'x-signature': webhooks.getSignature(payload) });
    expect(answer.statusCode).toBe(200);
    expect(webhooks.validateSignature(payload, { 'X-Signature': signBankledger(Buffer.from(payload)) })).toBe(true);
  });

  test('200 for a signature of either secret during a rotation', async ({ newApi }) => {
    const rotating = await newApi({
      config: { bankledgerWebhookSecrets: [TEST_SECRETS.bankledger, TEST_SECRETS.cardproc] },
    });
    for (const secret of [TEST_SECRETS.bankledger, TEST_SECRETS.cardproc]) {
      const bytes = Buffer.from(JSON.stringify(bankledgerBody('stl_none')));
      expect((await sendBankledger(rotating, bytes, { 'x-signature': signBankledger(bytes, secret) })).statusCode).toBe(
        200,
      );
    }
  });
});

describe('an event of a known type with invalid data', () => {
  test.for([
    ['no data', { ...bankledgerBody('stl_1'), data: undefined }],
    ['data null', { ...bankledgerBody('stl_1'), data: null }],
    ['no object', bankledgerBody('stl_1', { object: undefined })],
    ['no mode', bankledgerBody('stl_1', { live_mode: undefined })],
    ['an amount with decimals', bankledgerBody('stl_1', { amount_reconciled: 250.5 })],
    ['a negative amount', bankledgerBody('stl_1', { amount_reconciled: -1 })],
    ['an amount in text', bankledgerBody('stl_1', { amount_reconciled: '25000' })],
    ['no amount in an event about money', bankledgerBody('stl_1', { amount_reconciled: undefined })],
    ['no currency in an event about money', bankledgerBody('stl_1', { currency: null })],
  ] as const)('422 for %s, and nothing is stored', async ([_name, body], { api }) => {
    await expectRefused(api, () => sendBankledger(api, body), 422);
  });
});

describe('an event that is not about a settlement', () => {
  test('200, stored and unmatched: other types, live mode, other objects, unknown settlements', async ({
    api,
    steps,
  }) => {
    const id = await steps.waiting(BY_WIRE);
    const events = [
      bankledgerBody(id, {}, 'created'),
      bankledgerBody(id, {}, 'archived'),
      bankledgerBody(id, { live_mode: true }),
      bankledgerBody(id, { object: 'payment_order' }),
      bankledgerBody(id, { metadata: {} }),
      bankledgerBody(id, { metadata: null }),
      bankledgerBody('stl_unknown'),
      bankledgerBody(id, { type: 'rtp' }),
    ];
    for (const event of events) {
      expect(await send(api, event)).toEqual({ received: true, event_id: event.id, duplicate: false, matched: false });
      expect(await send(api, event)).toEqual({ received: true, event_id: event.id, duplicate: true, matched: false });
    }
    expect(await evidenceOf(api, id)).toEqual([]);
  });

  test.for([
    [
      'an unknown type about anything',
      { event: 'begin_processing', data: { object: 'payment_order', metadata: null } },
    ],
    [
      'an unknown type with amounts in text',
      { event: 'completed', data: { amount_reconciled: '1.00', live_mode: null } },
    ],
    ['an unknown type without data', { event: 'archived' }],
    ['a known type about another object', { event: 'created', data: { object: 'counterparty', live_mode: null } }],
    ['a known type about a returned payment order', { event: 'returned', data: { object: 'return', type: 5 } }],
  ] as const)('%s: 200, stored, applied to nothing', async ([_name, rest], { api }) => {
    const event = { id: `evt_${crypto.randomUUID()}`, ...rest };
    expect(await send(api, event)).toEqual({ received: true, event_id: event.id, duplicate: false, matched: false });
    expect(await send(api, event)).toMatchObject({ duplicate: true });
  });

  test('a new expected payment with null wherever a value is optional: 200, stored, applied to nothing', async ({
    api,
  }) => {
    const optional = ['amount_reconciled', 'currency', 'type', 'return_code', 'metadata', 'status', 'counterparty_id'];
    const data = Object.fromEntries(optional.map((name) => [name, null]));
    expect(await send(api, bankledgerBody('stl_unknown', data, 'created'))).toMatchObject({ matched: false });
    expect(await send(api, bankledgerBody('stl_unknown', { metadata: { settlement_id: null } }))).toMatchObject({
      matched: false,
    });
    expect(await send(api, bankledgerBody('\u0000'))).toMatchObject({ matched: false });
  });

  test('200 and unmatched for a settlement of another payment method', async ({ api, steps, byAch }) => {
    const card = await steps.waiting(BY_MANUAL_CARD);
    const wire = await steps.waiting(BY_WIRE);
    const ach = await steps.waiting(await byAch());
    for (const event of [
      bankledgerBody(card),
      bankledgerBody(wire, { type: 'ach' }),
      bankledgerBody(ach, { type: 'wire' }),
    ]) {
      expect(await send(api, event)).toMatchObject({ matched: false });
    }
    for (const id of [card, wire, ach]) expect(await evidenceOf(api, id)).toEqual([]);
    expect(await send(api, bankledgerBody(wire, { type: undefined }))).toMatchObject({ matched: true });
  });

  test('422 for an invalid live event in production; 200 and unmatched for a test event', async ({ newApi }) => {
    const production = await newApi({ runtime: 'production' });
    const [live, sandboxed] = [
      bankledgerBody('stl_1', { live_mode: true, currency: undefined }),
      bankledgerBody('stl_1', { live_mode: false, currency: undefined }),
    ];
    expect((await sendBankledger(production, live)).statusCode).toBe(422);
    expect(jsonOf(await sendBankledger(production, sandboxed))).toMatchObject({ received: true, matched: false });
  });
});

describe('an event', () => {
  test('200 fifty times at once, with one effect', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    const event = bankledgerBody(id);
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(api, event)));
    expect(answers.filter((answer) => !answer.duplicate)).toHaveLength(1);
    expect(answers.filter((answer) => answer.matched)).toHaveLength(50);
    expect(await evidenceOf(api, id)).toHaveLength(1);
    expect(await steps.activities.reviewSettlement(steps.step(id))).toMatchObject({ status: 'funded' });
    expect(await send(api, event)).toMatchObject({ duplicate: true });
    expect(await exceptionsOf(steps, id)).toEqual([]);
    expect(await api.connection.db.select().from(postings).where(eq(postings.settlementId, id))).toHaveLength(2);
  });

  test('is applied once if its settlement exists only when it is sent again', async ({ api, partner, steps }) => {
    const key = crypto.randomUUID();
    const id = settlementIdOf(partner.orgId, key);
    const event = bankledgerBody(id);
    const receipt = { received: true, event_id: event.id };
    expect(await send(api, event)).toEqual({ ...receipt, duplicate: false, matched: false });
    const body = settleBody(await createRecipient(api, partner), BY_WIRE);
    await api.call(partner, 'POST', '/v2/settle', body, { 'idempotency-key': key });
    await steps.activities.admitSettlement(steps.step(id));
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(api, event)));
    expect(answers).toEqual(answers.map(() => ({ ...receipt, duplicate: true, matched: true })));
    expect(await evidenceOf(api, id)).toHaveLength(1);
    expect(await steps.activities.reviewSettlement(steps.step(id))).toMatchObject({ status: 'funded' });
    await expectRefused(api, () => sendBankledger(api, event), 200, { ...receipt, duplicate: true, matched: true });
    expect((await steps.read(id)).amount_received).toBe('250.00');
  });

  test('200 with the id of an event of another provider: each is its own, also when it is sent again', async ({
    api,
  }) => {
    const id = 'evt_of_two_providers';
    for (const duplicate of [false, true]) {
      const answers = [
        await sendBankledger(api, { ...bankledgerBody('stl_none'), id }),
        await sendCardproc(api, { ...cardprocBody('stl_none'), id }),
      ];
      expect(answers.map((answer) => jsonOf(answer))).toMatchObject([{ duplicate }, { duplicate }]);
    }
  });

  test('409 for a known id with other bytes, and nothing is written', async ({ api }) => {
    const event = bankledgerBody('stl_none');
    await send(api, event);
    const problem = await expectRefused(api, () => sendBankledger(api, { ...event, event: 'returned' }), 409);
    expect(problem.code).toBe('provider_event_conflict');
  });

  test('200 and a signal to the workflow, in the transaction that stores the event', async ({ api, steps }) => {
    const id = await steps.waiting(BY_WIRE);
    const before = api.nudges();
    await send(api, bankledgerBody(id));
    const dispatched = await api.connection.db.select().from(outbox).where(eq(outbox.objectId, id));
    expect(dispatched.filter((row) => row.signal === 'evidenceRecorded')).toHaveLength(1);
    expect(api.nudges()).toBe(before + 1);
  });

  test('200, and the body is stored sealed', async ({ api }) => {
    const event = bankledgerBody('stl_none', { statement_descriptor: 'PAYER ZEBEDEE UNIQUENAME' });
    await send(api, event);
    expect(
      await api.connection.db.select().from(providerEvents).where(eq(providerEvents.eventId, event.id)),
    ).toHaveLength(1);
    expect(await dumpTables(api.connection.pool)).not.toContain('ZEBEDEE UNIQUENAME');
  });
});

describe('evidence of a wire or a debit', () => {
  const fund = (steps: Steps, id: string) => steps.activities.reviewSettlement(steps.step(id));

  test('is applied later if it comes before the settlement waits for it', async ({ api, steps }) => {
    const id = await steps.accept(BY_WIRE);
    expect(await send(api, bankledgerBody(id))).toMatchObject({ matched: true });
    expect(await steps.activities.admitSettlement(steps.step(id))).toMatchObject({ status: 'funded' });
  });

  test('adds up in any order if it comes in parts', async ({ api, steps }) => {
    const parts = [10_000, 14_999, 1];
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
    ]) {
      const id = await steps.waiting(BY_WIRE);
      const seen: string[] = [];
      for (const index of order) {
        await send(api, bankledgerBody(id, { amount_reconciled: parts[index] }, 'partially_reconciled'));
        await fund(steps, id);
        const { status, amount_received } = await steps.read(id);
        seen.push(`${status} ${amount_received}`);
      }
      expect(seen.at(-1)).toBe('funded 250.00');
      expect(seen.slice(0, -1).every((entry) => entry.startsWith('awaiting_funds'))).toBe(true);
      expect(await exceptionsOf(steps, id)).toEqual([]);
    }
  });

  test('returned before it funded: failed, with the code of the return', async ({ api, steps, byAch }) => {
    const id = await steps.waiting(await byAch());
    await send(api, bankledgerBody(id, { type: 'ach', return_code: 'R01' }, 'returned'));
    expect(await fund(steps, id)).toMatchObject({ status: 'failed', failureCode: 'R01' });
    expect((await steps.read(id)).failure).toEqual({
      code: 'R01',
      message: 'The bank returned the payment.',
      doc_url: '/docs/failures#r01',
    });
  });

  test.for([undefined, null, '', 'Insufficient funds of Zebedee', 'r01', 'R01;DROP', 1, { code: 'R01' }])(
    'returned with the invalid code %j: the partner does not see it',
    async (code, { api, steps }) => {
      const id = await steps.waiting(BY_WIRE);
      await send(api, bankledgerBody(id, { return_code: code }, 'returned'));
      expect(await fund(steps, id)).toMatchObject({ status: 'failed', failureCode: 'payment_returned' });
    },
  );

  test.for([
    ['an amount alone takes back this amount', 4_000, null, '60.00', '40.00', 'USD'],
    ['another currency alone takes back nothing', null, 'EUR', '100.00', undefined, 'EUR'],
    ['neither takes back the whole payment', null, null, '0.00', '100.00', 'USD'],
  ] as const)(
    'returned with %s',
    async ([_case, amountReconciled, currency, received, amount, shown], { api, steps }) => {
      const id = await steps.waiting(BY_WIRE);
      await send(api, bankledgerBody(id, { amount_reconciled: 10_000 }, 'partially_reconciled'));
      await send(api, bankledgerBody(id, { amount_reconciled: amountReconciled, currency }, 'returned'));
      const { amount_received, exceptions } = await steps.read(id);
      expect([amount_received, exceptions[0].amount, exceptions[0].currency]).toEqual([received, amount, shown]);
    },
  );

  test('payment instructions are shown while a wire is waited for, and never for a card', async ({
    api,
    partner,
    steps,
  }) => {
    const id = await steps.accept(BY_WIRE);
    expect((await steps.read(id)).payment_instructions).toBeNull();
    await steps.activities.admitSettlement(steps.step(id));
    const shown = { reference: id, amount: '250.00', currency: 'USD', simulation: true };
    expect((await steps.read(id)).payment_instructions).toMatchObject(shown);
    await api.call(partner, 'POST', `/v2/settle/${id}/cancel`);
    expect((await steps.read(id)).payment_instructions).toBeNull();
    expect((await steps.read(await steps.waiting(BY_MANUAL_CARD))).payment_instructions).toBeNull();
  });

  test('payment instructions ask for what is missing of a wire, and for nothing once it is there', async ({
    api,
    steps,
  }) => {
    const id = await steps.waiting(BY_WIRE);
    await send(api, bankledgerBody(id, { amount_reconciled: 10_000 }, 'partially_reconciled'));
    expect((await steps.read(id)).payment_instructions).toMatchObject({ reference: id, amount: '150.00' });
    await send(api, bankledgerBody(id, { amount_reconciled: 15_000 }));
    const { status, amount_received, payment_instructions } = await steps.read(id);
    expect([status, amount_received, payment_instructions]).toEqual(['awaiting_funds', '250.00', null]);
  });
});
