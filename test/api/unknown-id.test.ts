/** Ids in bodies that name nothing of the caller's (contract §2). */
import { describe, expect } from 'vitest';
import { newId } from '../../db/id.ts';
import { callAs, createConsumerRecipient, quoteBody, signIn } from '../support/consumer.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf, settleBody } from '../support/partner.ts';
import { expectRefused } from '../support/refusal.ts';

const test = withApi();

describe('404 names the field whose id names nothing', () => {
  test.for([
    ['/v2/settle', settleBody(newId())],
    [
      '/v1/caribbean/settle',
      { corridor: 'US-JM', amount: '250.00', recipient_id: newId(), payout_rail: 'bank_transfer' },
    ],
    ['/v1/kyc/verify', { recipient_id: newId() }],
    ['/v1/kyc/idverify/applicant', { recipient_id: newId() }],
  ] as const)('of a partner: %s', async ([url, body], { api, partner }) => {
    const headers = { 'idempotency-key': newId() };
    await expectRefused(api, () => api.call(partner, 'POST', url, body, headers), 404, {
      code: 'not_found',
      field: 'recipient_id',
    });
  });

  test('of a consumer: recipient and quote', async ({ api }) => {
    const consumer = await signIn(api);
    const recipientId = await createConsumerRecipient(api, consumer);
    const transfer = (body: Record<string, unknown>) =>
      callAs(api, consumer, 'POST', '/consumer/transfers', body, { 'idempotency-key': newId() });
    const unknown = await transfer({ ...quoteBody(), recipient_id: newId(), card_token: 'tok_visa' });
    expect([unknown.statusCode, jsonOf(unknown).field]).toEqual([404, 'recipient_id']);
    const unquoted = await transfer({ quote_id: newId(), recipient_id: recipientId, card_token: 'tok_visa' });
    expect([unquoted.statusCode, jsonOf(unquoted).field]).toEqual([404, 'quote_id']);
  });

  test('and names none where the path has the id', async ({ api, partner }) => {
    const answer = await api.call(partner, 'GET', `/v1/recipients/${newId()}`);
    expect([answer.statusCode, 'field' in jsonOf(answer)]).toEqual([404, false]);
  });
});
