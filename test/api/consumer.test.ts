/** A consumer's profile, recipients and quotes (contract §12). */
import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { insertRecipient, openRecipient } from '../../db/queries/recipient.ts';
import { quotes, recipients } from '../../db/schema/index.ts';
import {
  callAs,
  consumerRecipientBody,
  createConsumerRecipient,
  newEmail,
  quoteBody,
  signIn,
} from '../support/consumer.ts';
import { dumpTables } from '../support/database.ts';
import { FILE, withApi } from '../support/fixture.ts';
import { createRecipient, jsonOf, settleBody } from '../support/partner.ts';

const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const test = withApi().extend('consumer', FILE, ({ api }) => signIn(api));

describe('GET /consumer/me', () => {
  test('200 with the verified contact in its normal spelling', async ({ api }) => {
    const email = newEmail();
    const caller = await signIn(api, { email: email.toUpperCase() });
    expect(jsonOf(await callAs(api, caller, 'GET', '/consumer/me'))).toEqual({
      consumer_id: caller.consumerId,
      email,
      phone: null,
      created_at: expect.stringMatching(MOMENT),
      session_expires_at: expect.stringMatching(MOMENT),
    });
  });

  test('200 with the phone of a consumer who signed in by phone', async ({ api }) => {
    const caller = await signIn(api, { phone: '+18765550199' });
    expect(jsonOf(await callAs(api, caller, 'GET', '/consumer/me'))).toMatchObject({
      email: null,
      phone: '+18765550199',
    });
  });
});

describe('the recipients', () => {
  test('201 again with the same bytes for the same Idempotency-Key, and one recipient; 409 for another body', async ({
    api,
  }) => {
    const caller = await signIn(api);
    const headers = { 'idempotency-key': newId() };
    const post = (body: Record<string, unknown>) => callAs(api, caller, 'POST', '/consumer/recipients', body, headers);
    const body = consumerRecipientBody();
    const [first, again] = [await post(body), await post(body)];
    expect([first.statusCode, again.statusCode, again.body]).toEqual([201, 201, first.body]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(jsonOf(await post({ ...body, name: 'Another' }))).toMatchObject({ status: 409, mismatch: ['name'] });
    expect(jsonOf(await callAs(api, caller, 'GET', '/consumer/recipients'))).toHaveLength(1);
  });

  test("201 with a partner's fields but organization, kind and metadata; the account number is sealed", async ({
    api,
    consumer,
  }) => {
    const accountNumber = 'CONSUMER998877';
    const body = consumerRecipientBody({
      bank_details: { bank_name: 'NCB', account_number: accountNumber, currency: 'JMD' },
    });
    const answer = await callAs(api, consumer, 'POST', '/consumer/recipients', body);
    expect(answer.statusCode).toBe(201);
    expect(jsonOf(answer)).toEqual({
      recipient_id: expect.stringMatching(UUID_V7),
      entity_type: 'individual',
      name: 'Marcia Brown',
      country: 'JM',
      email: null,
      phone: null,
      bank_details: {
        bank_name: 'NCB',
        account_number_last4: '8877',
        account_type: null,
        branch_code: null,
        routing_number: null,
        swift_bic: null,
        currency: 'JMD',
      },
      mobile_details: null,
      is_active: true,
      verification_status: 'unverified',
      erased_at: null,
      created_at: expect.stringMatching(MOMENT),
      updated_at: expect.stringMatching(MOMENT),
    });
    expect(await dumpTables(api.connection.pool)).not.toContain(accountNumber);
  });

  test("200 with the consumer's own recipients, newest first", async ({ api }) => {
    const [mine, other, partner] = [await signIn(api), await signIn(api), await api.createCaller()];
    const ids = [await createConsumerRecipient(api, mine), await createConsumerRecipient(api, mine)];
    await createConsumerRecipient(api, other);
    await createRecipient(api, partner);
    const answer = await callAs(api, mine, 'GET', '/consumer/recipients');
    expect([answer.statusCode, answer.headers['x-total-count'], answer.headers['link']]).toEqual([200, '2', undefined]);
    expect(jsonOf(answer).map((recipient: { recipient_id: string }) => recipient.recipient_id)).toEqual(ids.reverse());
    for (const id of ids) {
      expect((await api.call(partner, 'GET', `/v1/recipients/${id}`)).statusCode).toBe(404);
      const settled = await api.call(partner, 'POST', '/v2/settle', settleBody(id), {
        'idempotency-key': crypto.randomUUID(),
      });
      expect(settled.statusCode).toBe(404);
    }
  });

  test('200 with all recipients, without a link to another page', async ({ api }) => {
    const caller = await signIn(api);
    const id = await createConsumerRecipient(api, caller);
    const [row] = await api.connection.db.select().from(recipients).where(eq(recipients.recipientId, id));
    const { recipient, held } = openRecipient(api.deps.sealer, row ?? expect.fail('no recipient'));
    const { orgId, kind, entityType, country, metadata } = recipient;
    const draft = { kind, entityType, country, metadata, ...(held ?? expect.fail('erased')).personalData };
    const stamp = { sealer: api.deps.sealer, at: api.deps.now() };
    for (let n = 0; n < 200; n += 1) await insertRecipient(api.connection.db, orgId, draft, stamp);
    const answer = await callAs(api, caller, 'GET', '/consumer/recipients');
    expect([jsonOf(answer).length, answer.headers['x-total-count'], answer.headers['link']]).toEqual([
      201,
      '201',
      undefined,
    ]);
  });
});

describe('POST /consumer/quote', () => {
  test("200 with the estimate's figures and an id, for thirty seconds, not executable", async ({ api, consumer }) => {
    const answer = await callAs(api, consumer, 'POST', '/consumer/quote', quoteBody());
    expect(answer.statusCode).toBe(200);
    const quote = jsonOf(answer);
    const partner = await api.createCaller('read');
    const {
      estimate_id: _id,
      rate_locked_until: _until,
      ...estimate
    } = jsonOf(await api.call(partner, 'POST', '/v2/estimate', quoteBody()));
    expect(quote).toEqual({
      quote_id: expect.stringMatching(UUID_V7),
      ...estimate,
      rate_locked_until: quote.expires_at,
      expires_at: expect.stringMatching(MOMENT),
    });
    expect(quote).toMatchObject({
      executable: false,
      display_only: true,
      destination_amount: '37829.63',
      total_fees: '9.43',
    });
    const [row] = await api.connection.db.select().from(quotes).where(eq(quotes.quoteId, quote.quote_id));
    expect((row?.expiresAt.getTime() ?? 0) - (row?.createdAt.getTime() ?? 0)).toBe(30_000);
  });
});
