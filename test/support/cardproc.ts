/** The card processor's events for tests. */
import { createHmac, randomUUID } from 'node:crypto';
import { TEST_SECRETS, type TestApi } from './api.ts';

const CREATED = 1_795_000_000;

/** A card payment of 250.00 USD; `object` overrides fields of the payment. */
export const cardprocBody = (
  settlementId: string,
  object: Record<string, unknown> = {},
  type = 'payment_intent.succeeded',
) => ({
  id: `evt_${randomUUID()}`,
  object: 'event',
  type,
  created: CREATED,
  livemode: false,
  data: { object: { amount_received: 25_000, currency: 'usd', metadata: { settlement_id: settlementId }, ...object } },
});

export function signCardproc(bytes: Buffer, secret: string = TEST_SECRETS.cardproc): Record<string, string> {
  const timestamp = Math.floor(Date.now() / 1_000);
  const signature = createHmac('sha256', secret).update(`${timestamp}.`).update(bytes).digest('hex');
  return { 'cardproc-signature': `t=${timestamp},v1=${signature}` };
}

/** Sends an event as the processor does. */
export function sendCardproc(api: TestApi, event: object | Buffer) {
  const bytes = Buffer.isBuffer(event) ? event : Buffer.from(JSON.stringify(event));
  return api.call(null, 'POST', '/v2/webhooks/cardproc', bytes, signCardproc(bytes));
}
