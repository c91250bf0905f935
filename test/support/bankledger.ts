/** The bank ledger's events for tests, and accounts linked to pay by ACH. */
import { createHmac } from 'node:crypto';
import { type Caller, TEST_SECRETS, type TestApi } from './api.ts';
import { jsonOf } from './partner.ts';

/** A reconciled wire of 250.00 USD. */
export const bankledgerBody = (settlementId: string, data: Record<string, unknown> = {}, event = 'reconciled') => ({
  id: `evt_${crypto.randomUUID()}`,
  event,
  data: {
    id: 'ep_1',
    object: 'expected_payment',
    live_mode: false,
    status: event,
    amount_reconciled: 25_000,
    currency: 'USD',
    type: 'wire',
    metadata: { settlement_id: settlementId },
    ...data,
  },
});

export const signBankledger = (bytes: Buffer, secret: string = TEST_SECRETS.bankledger): string =>
  createHmac('sha256', secret).update(bytes).digest('hex');

/** Sends an event as the provider does; `headers` override the right signature. */
export function sendBankledger(api: TestApi, event: object | Buffer, headers: Record<string, string> = {}) {
  const bytes = Buffer.isBuffer(event) ? event : Buffer.from(JSON.stringify(event));
  return api.call(null, 'POST', '/v2/webhooks/bankledger', bytes, { 'x-signature': signBankledger(bytes), ...headers });
}

/** The access token of a test account. */
export async function linkAccount(
  api: TestApi,
  caller: Caller,
  publicToken = 'public-sandbox-manual',
): Promise<string> {
  const answer = await api.call(caller, 'POST', '/v2/banklink/exchange', { public_token: publicToken });
  if (answer.statusCode !== 200) throw new Error(`exchange refused: ${answer.body}`);
  return jsonOf(answer).access_token;
}
