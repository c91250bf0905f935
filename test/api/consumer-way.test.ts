/**
 * What a consumer needs on the way of a transfer: a linked bank account, a verification, a cancellation (contract §12).
 */
import { describe, expect } from 'vitest';
import { transferIdOf } from '../../db/queries/transfer.ts';
import type { TestApi } from '../support/api.ts';
import {
  type ConsumerCaller,
  callAs,
  createConsumerRecipient,
  signIn,
  transfer,
  transferBody,
} from '../support/consumer.ts';
import { withApi } from '../support/fixture.ts';
import { jsonOf } from '../support/partner.ts';
import { insertCertifiedSettlement } from '../support/settlement.ts';

const test = withApi().extend('consumer', ({ api }) => signIn(api));

describe('linking a bank account', () => {
  const link = async (api: TestApi, consumer: ConsumerCaller): Promise<string> => {
    const linked = await callAs(api, consumer, 'POST', '/consumer/banklink/link-token');
    expect(linked.statusCode, linked.body).toBe(200);
    const { sandbox_public_token: publicToken } = jsonOf(linked);
    const exchange = () => callAs(api, consumer, 'POST', '/consumer/banklink/exchange', { public_token: publicToken });
    const exchanged = await exchange();
    expect(exchanged.statusCode, exchanged.body).toBe(200);
    expect((await exchange()).statusCode).toBe(422);
    return jsonOf(exchanged).access_token;
  };

  test('201 for a transfer that is paid from the linked account', async ({ api, consumer }) => {
    const token = await link(api, consumer);
    const recipientId = await createConsumerRecipient(api, consumer);
    const { card_token: _card, ...body } = transferBody(recipientId);
    const byAch = { ...body, payment_method: 'ach', banklink_account_token: token };
    expect((await transfer(api, consumer, byAch)).statusCode).toBe(201);
  });

  test("422 for another consumer's or a partner's account", async ({ api, consumer, partner }) => {
    const recipientId = await createConsumerRecipient(api, consumer);
    const { card_token: _card, ...body } = transferBody(recipientId);
    const ofPartner = await api.call(partner, 'POST', '/v2/banklink/exchange', {
      public_token: 'public-sandbox-checking',
    });
    for (const token of [await link(api, await signIn(api)), jsonOf(ofPartner).access_token]) {
      const refused = await transfer(api, consumer, {
        ...body,
        payment_method: 'ach',
        banklink_account_token: token,
      });
      expect(refused.statusCode).toBe(422);
    }
  });
});

describe('verifying a recipient', () => {
  test('201 with the open verification, again the same one, without the organization', async ({ api, consumer }) => {
    const recipientId = await createConsumerRecipient(api, consumer);
    const verify = () => callAs(api, consumer, 'POST', `/consumer/recipients/${recipientId}/verify`);
    const [first, again] = [await verify(), await verify()];
    expect([first.statusCode, again.statusCode], first.body).toEqual([201, 201]);
    expect(jsonOf(first)).toMatchObject({ recipient_id: recipientId, status: 'pending', provider: 'idverify' });
    expect(jsonOf(first)).not.toHaveProperty('org_id');
    expect(jsonOf(again).verification_id).toBe(jsonOf(first).verification_id);
  });
});

describe('canceling a transfer', () => {
  test('200 with the canceled transfer, and 200 again', async ({ api, consumer }) => {
    const created = await transfer(api, consumer, transferBody(await createConsumerRecipient(api, consumer)));
    const { transfer_id: transferId } = jsonOf(created);
    const cancel = () => callAs(api, consumer, 'POST', `/consumer/transfers/${transferId}/cancel`);
    const [first, again] = [await cancel(), await cancel()];
    expect([first.statusCode, again.statusCode], first.body).toEqual([200, 200]);
    expect(jsonOf(first)).toMatchObject({ transfer_id: transferId, status: 'canceled' });
    expect(again.body).toBe(first.body);
  });
});

describe("a transfer's certificate", () => {
  const certificateOf = (api: TestApi, consumer: ConsumerCaller, transferId: string, headers = {}) =>
    callAs(api, consumer, 'GET', `/consumer/transfers/${transferId}/certificate`, undefined, headers);

  test('200 with the signed bytes, and 304 for their tag', async ({ api, consumer }) => {
    const { settlement, certId } = await insertCertifiedSettlement(api.connection.db, consumer.consumerId);
    const transferId = transferIdOf(settlement);
    const answer = await certificateOf(api, consumer, transferId);
    expect([answer.statusCode, jsonOf(answer).settlement_id], answer.body).toEqual([200, settlement.settlementId]);
    expect(answer.headers['content-disposition']).toContain(certId);
    // A browser keeps it for this session: the next person at the same machine has another one.
    expect(answer.headers['vary']).toBe('Accept, Authorization');
    const tag = String(answer.headers['etag']);
    expect((await certificateOf(api, consumer, transferId, { 'if-none-match': tag })).statusCode).toBe(304);
  });

  test('404 until the transfer is settled', async ({ api, consumer }) => {
    const created = await transfer(api, consumer, transferBody(await createConsumerRecipient(api, consumer)));
    expect((await certificateOf(api, consumer, jsonOf(created).transfer_id)).statusCode).toBe(404);
  });
});
