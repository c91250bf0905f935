/**
 * The card processor's webhook (contract §9): only the envelope of an event is required. `data` is validated for the
 * types that the service knows.
 */
import { createHmac, randomUUID } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { evidence, providerEvents } from '../../db/schema/index.ts';
import { EXCEPTIONS_SHOWN_MAX } from '../../domain/settlement/evidence.ts';
import { TEST_SECRETS, type TestApi } from '../support/api.ts';
import { cardprocBody, sendCardproc } from '../support/cardproc.ts';
import { withApi } from '../support/fixture.ts';
import { type Json, jsonOf } from '../support/partner.ts';
import { cardprocSignature } from '../support/provider-event.ts';
import { expectInvalid, expectUnchanged } from '../support/refusal.ts';
import { BY_MANUAL_CARD, moveToProduction } from '../support/settlement.ts';

const test = withApi();

const evidenceOf = (api: TestApi, settlementId: string) =>
  api.connection.db.select().from(evidence).where(eq(evidence.settlementId, settlementId));

async function expectStoredUnmatched(api: TestApi, event: { readonly id: string }): Promise<void> {
  const answer = await sendCardproc(api, event);
  expect([answer.statusCode, jsonOf(answer)]).toEqual([
    200,
    { received: true, event_id: event.id, duplicate: false, matched: false },
  ]);
  const { eventId } = providerEvents;
  expect(await api.connection.db.select().from(providerEvents).where(eq(eventId, event.id))).toHaveLength(1);
}

const envelope = (type: string, rest: Record<string, unknown> = {}) => ({ id: `evt_${randomUUID()}`, type, ...rest });

/** Events as processors send them every day, with null wherever a value is optional. */
const ORDINARY_EVENTS = {
  'customer.created': {
    object: 'event',
    api_version: '2025-09-30.clover',
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    data: { object: { id: 'cus_1', address: null, balance: 0, metadata: null }, previous_attributes: null },
  },
  'charge.refunded': {
    object: 'event',
    created: 1_795_000_000,
    livemode: false,
    data: { object: { id: 'ch_1', amount_received: null, currency: 'usd', metadata: {}, last_payment_error: null } },
  },
  'payment_intent.created': {
    object: 'event',
    created: 1_795_000_000,
    livemode: false,
    data: { object: { id: 'pi_1', amount_received: 0, currency: 'usd', last_payment_error: null, metadata: {} } },
  },
  'balance.available': { object: 'event', created: null, livemode: null, data: { object: null } },
  'v1.billing.meter.no_meter_found': { object: 'v2.core.event', created: '2026-11-21T08:00:00.000Z', data: null },
  'account.updated': { account: 'acct_1', data: [] },
  'ping.with.nothing': {},
};

describe("the signature of a card processor's event", () => {
  const DIGEST = 'a'.repeat(64);
  const AT = new Date('2026-11-21T08:00:00.000Z');
  const sentAt = AT.getTime() / 1_000;
  /** The status of an event that is signed at this second with such a header. */
  const statusOf = async (
    api: TestApi,
    seconds: number,
    headerOf = (time: string, right: string) => `${time},${right}`,
  ) => {
    const bytes = Buffer.from(JSON.stringify(envelope('unknown')));
    const right = createHmac('sha256', TEST_SECRETS.cardproc).update(`${seconds}.`).update(bytes).digest('hex');
    const headers = { 'cardproc-signature': headerOf(`t=${seconds}`, `v1=${right}`) };
    return (await api.call(null, 'POST', '/v2/webhooks/cardproc', bytes, headers)).statusCode;
  };

  test('200 up to 300 seconds from the time of the service, in both directions, and 401 beyond', async ({
    api,
    clock,
  }) => {
    clock.stop(AT);
    const statuses = [-301, -300, 300, 301].map((seconds) => statusOf(api, sentAt + seconds));
    expect(await Promise.all(statuses)).toEqual([401, 200, 200, 401]);
  });

  test.for<[string, (time: string, right: string) => string]>([
    ['eight digests, of which the first is right', (time, right) => `${time},${right}${`,v1=${DIGEST}`.repeat(7)}`],
    ['eight digests, of which the last is right', (time, right) => `${time}${`,v1=${DIGEST}`.repeat(7)},${right}`],
    ['a digest of no form beside the right one', (time, right) => `${time},v1=xyz,${right}`],
    ['another scheme beside it, and white space', (time, right) => `${time}, v0=${DIGEST}, ${right}`],
  ])('200 for %s', async ([_case, headerOf], { api, clock }) => {
    clock.stop(AT);
    expect(await statusOf(api, sentAt, headerOf)).toBe(200);
  });

  test('401 for a tampered, stale, future, missing or wrong signature, and nothing is stored', async ({
    api,
    clock,
  }) => {
    clock.stop(AT);
    const event = cardprocBody('stl_none');
    const bytes = Buffer.from(JSON.stringify(event));
    const tampered = JSON.stringify({ ...event, livemode: true });
    const secret = TEST_SECRETS.cardproc;
    const headersOfRefused = [
      cardprocSignature(tampered, secret, sentAt),
      cardprocSignature(bytes, secret, sentAt - 301),
      cardprocSignature(bytes, secret, sentAt + 301),
      {},
      cardprocSignature(bytes, 'x'.repeat(32), sentAt),
    ];
    await expectUnchanged(api.connection.pool, async () => {
      for (const headers of headersOfRefused) {
        const refused = await api.call(null, 'POST', '/v2/webhooks/cardproc', bytes, headers);
        expect(jsonOf(refused)).toMatchObject({ status: 401, code: 'signature_invalid' });
        expect(refused.headers['www-authenticate']).toBe('Signature realm="settlement"');
      }
    });
  });
});

describe('an event of a type that the service does not know', () => {
  test.for(Object.entries(ORDINARY_EVENTS))('%s: 200, stored, applied to nothing', async ([type, rest], { api }) => {
    await expectStoredUnmatched(api, envelope(type, rest));
  });

  test.for(['updated', 'funds_withdrawn', 'funds_reinstated', 'prevented'])(
    'charge.dispute.%s in the local sandbox: 200, stored, applied to nothing',
    async (ending, { api, steps }) => {
      const id = await steps.waiting(BY_MANUAL_CARD);
      await expectStoredUnmatched(api, cardprocBody(id, {}, `charge.dispute.${ending}`));
      expect(await evidenceOf(api, id)).toEqual([]);
    },
  );
});

describe('an event of a known type', () => {
  test('may have null for every optional value, and another type for what only says why', async ({ api, steps }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    const paid = cardprocBody(id, { amount_received: 25_000, last_payment_error: null });
    expect(jsonOf(await sendCardproc(api, { ...paid, created: null, object: null }))).toMatchObject({ matched: true });
    const failed = { amount_received: null, currency: null };
    for (const lastError of [null, { code: null }, 'declined']) {
      const event = cardprocBody(id, { ...failed, last_payment_error: lastError }, 'payment_intent.payment_failed');
      expect(jsonOf(await sendCardproc(api, event))).toMatchObject({ matched: true });
    }
    const kinds = (await evidenceOf(api, id)).map(({ kind }) => kind);
    expect(kinds).toEqual(['collection_succeeded', ...Array<string>(3).fill('collection_failed')]);
  });

  test.for([
    ['card_declined', 'card_declined'],
    ['', 'collection_failed'],
    ['Declined for Zebedee', 'collection_failed'],
    ['a;DROP', 'collection_failed'],
    [`a${'b'.repeat(64)}`, 'collection_failed'],
    [51, 'collection_failed'],
  ] as const)('failed with the code %j: the partner sees %s', async ([code, shown], { api, steps }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    const event = cardprocBody(id, { last_payment_error: { code } }, 'payment_intent.payment_failed');
    expect(jsonOf(await sendCardproc(api, event))).toMatchObject({ matched: true });
    expect((await evidenceOf(api, id)).map(({ failure }) => failure?.code)).toEqual([shown]);
  });

  test('a dispute takes its amount in the currency as it is written, or the whole payment if it cannot be read', async ({
    api,
    steps,
  }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    for (const amount of [2_000, '20.00', -1]) {
      const event = cardprocBody(id, { amount, currency: 'usd' }, 'charge.dispute.created');
      expect(jsonOf(await sendCardproc(api, event))).toMatchObject({ matched: true });
    }
    const disputed = (await evidenceOf(api, id)).map(({ amountMinor, currency }) => [amountMinor, currency]);
    expect(disputed).toEqual([
      [2_000n, 'USD'],
      [null, 'USD'],
      [null, 'USD'],
    ]);
  });

  test('200, stored and applied to nothing for a settlement of another environment in the same database', async ({
    api,
    steps,
  }) => {
    const id = await steps.waiting(BY_MANUAL_CARD);
    await moveToProduction(api, id);
    await expectStoredUnmatched(api, cardprocBody(id));
    expect(await evidenceOf(api, id)).toEqual([]);
  });

  test.for([
    ['metadata null', { metadata: null }],
    ['settlement_id null', { metadata: { settlement_id: null } }],
    ['no metadata', { metadata: undefined }],
    ['the id of a settlement that does not exist', { metadata: { settlement_id: 'stl_unknown' } }],
    ['an empty id', { metadata: { settlement_id: '' } }],
    ['an id that no settlement can have', { metadata: { settlement_id: `\u0000 ${'x'.repeat(400)}` } }],
  ] as const)('200, stored and applied to nothing with %s', async ([_case, object], { api }) => {
    for (const type of ['payment_intent.succeeded', 'payment_intent.processing', 'charge.dispute.created'])
      await expectStoredUnmatched(api, cardprocBody('stl_unknown', object, type));
  });

  test.for([
    ['no data', { data: undefined }, [['body.data', 'missing']]],
    ['data null', { data: null }, [['body.data', 'dict_type']]],
    ['no mode', { livemode: undefined }, [['body.livemode', 'missing']]],
    [
      'an amount in text',
      { data: { object: { amount_received: '250.00', currency: 'usd' } } },
      [['body.data.object.amount_received', 'int_type']],
    ],
    [
      'a currency of four letters',
      { data: { object: { amount_received: 25_000, currency: 'usdx' } } },
      [['body.data.object.currency', 'string_pattern_mismatch']],
    ],
    [
      'no amount where money came',
      { data: { object: { currency: 'usd', metadata: { settlement_id: 'stl_1' } } } },
      [['body.data.object.amount_received', 'missing']],
    ],
  ] as const)('422 for %s, and nothing is stored', async ([_case, change, faults], { api }) => {
    await expectInvalid(api, () => sendCardproc(api, { ...cardprocBody('stl_unknown'), ...change }), faults);
  });
});

test('a settlement and its events show the latest hundred exceptions, and each exception has an event', async ({
  api,
  partner,
  steps,
}) => {
  const settlementId = await steps.accept(BY_MANUAL_CARD);
  for (let number = 1; number <= EXCEPTIONS_SHOWN_MAX + 3; number += 1)
    expect((await sendCardproc(api, cardprocBody(settlementId, { currency: 'eur' }))).statusCode).toBe(200);
  const events = jsonOf(await api.call(partner, 'GET', `/v1/events?limit=${EXCEPTIONS_SHOWN_MAX}`));
  const idsOf = (exceptions: Json[]) => exceptions.map(({ evidence_id: id }) => id);
  const all = (await evidenceOf(api, settlementId))
    .toSorted((one, other) => Number(one.position) - Number(other.position))
    .map(({ evidenceId }) => evidenceId);
  expect(idsOf(events.map(({ data }: Json) => data.exception)).toReversed()).toEqual(all.slice(3));
  const shown = jsonOf(await api.call(partner, 'GET', `/v2/settle/${settlementId}`));
  expect(idsOf(shown.exceptions)).toEqual(all.slice(3));
  expect(idsOf(events[0].data.exceptions)).toEqual(all.slice(3));
  expect(idsOf(events[1].data.exceptions)).toEqual(all.slice(2, -1));
});
