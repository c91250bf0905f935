/** Sends the bank ledger's events to the API of a test, and links accounts to pay by ACH. */
import { type Caller, TEST_SECRETS, type TestApi } from './api.ts';
import { jsonOf } from './partner.ts';
import { bankledgerSignature } from './provider-event.ts';

export { bankledgerBody } from './provider-event.ts';

export const signBankledger = (bytes: Buffer, secret: string = TEST_SECRETS.bankledger): string =>
  bankledgerSignature(bytes, secret);

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
