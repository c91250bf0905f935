/** Someone who settles by card on the benchmark's ground, and the card processor who says that it was paid. */
import { createHmac, randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { z } from 'zod';
import type { Ground } from './ground.ts';

const Organization = z.object({ api_key: z.string() });
const Recipient = z.object({ recipient_id: z.string() });
const Settlement = z.object({ settlement_id: z.string() });

const AMOUNT = '250.00';
const AMOUNT_MINOR = 25_000;

export type Payer = {
  readonly apiKey: string;
  /** What `POST /v2/settle` is sent, but for the key. The token is one that the simulated processor leaves alone. */
  readonly settleBody: string;
  /** @returns the settlement's id */
  settle(): Promise<string>;
  /** Tells the service, signed, that all of it was collected. */
  pay(settlementId: string): Promise<void>;
  close(): Promise<void>;
};

/** @param recipientName decides in the sandbox what screening and the payout rail say */
export async function createPayer(
  { apiUrl, cardprocSecret }: Ground,
  recipientName: string,
  connections: number,
): Promise<Payer> {
  const http = new Pool(apiUrl, { connections });
  const post = async (path: string, body: string, headers: Record<string, string>): Promise<unknown> => {
    const answer = await http.request({
      method: 'POST',
      path,
      body,
      headers: { 'content-type': 'application/json', ...headers },
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`POST ${path} answered ${answer.statusCode}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
  const organization = { name: 'Bench', country: 'JM', contact_email: 'bench@acme.example' };
  const { api_key: apiKey } = Organization.parse(await post('/v1/orgs', JSON.stringify(organization), {}));
  const recipient = {
    kind: 'contractor',
    entity_type: 'individual',
    name: recipientName,
    country: 'JM',
    bank_details: { bank_name: 'National Commercial Bank', account_number: '123456789', currency: 'JMD' },
  };
  const { recipient_id: recipientId } = Recipient.parse(
    await post('/v1/recipients', JSON.stringify(recipient), { 'x-api-key': apiKey }),
  );
  const settleBody = JSON.stringify({
    corridor: 'US-JM',
    amount: AMOUNT,
    recipient_id: recipientId,
    payment_method: 'card',
    payout_rail: 'bank_transfer',
    card_token: 'tok_manual',
  });
  return {
    apiKey,
    settleBody,
    settle: async () =>
      Settlement.parse(await post('/v2/settle', settleBody, { 'x-api-key': apiKey, 'idempotency-key': randomUUID() }))
        .settlement_id,
    pay: async (settlementId) => {
      const timestamp = Math.floor(Date.now() / 1_000);
      const object = {
        object: 'payment_intent',
        amount_received: AMOUNT_MINOR,
        currency: 'usd',
        metadata: { settlement_id: settlementId },
      };
      const event = {
        id: `evt_${randomUUID()}`,
        object: 'event',
        type: 'payment_intent.succeeded',
        created: timestamp,
        livemode: false,
        data: { object },
      };
      const body = JSON.stringify(event);
      const signature = createHmac('sha256', cardprocSecret).update(`${timestamp}.${body}`).digest('hex');
      await post('/v2/webhooks/cardproc', body, { 'cardproc-signature': `t=${timestamp},v1=${signature}` });
    },
    close: () => http.close(),
  };
}
