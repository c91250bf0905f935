/** A partner that settles by card, and the card processor that reports the payments. */
import { createHmac, randomUUID } from 'node:crypto';
import { createClient } from '../../clients/typescript/index.ts';
import { cardSettlementBody, type Partner, recipientBody, signUp } from '../../scripts/sandbox/partner.ts';
import type { BenchStack } from './stack.ts';

const AMOUNT = '250.00';
const AMOUNT_MINOR = 25_000;
/** The simulated card processor reports nothing for this token. */
const SILENT_CARD_TOKEN = 'tok_manual';

export type Payer = Partner & {
  /** The body of `POST /v2/settle`. */
  readonly settleBody: string;
  /** @returns the settlement's id */
  settle(): Promise<string>;
  /** Sends the card processor's signed event: the whole amount was collected. */
  pay(settlementId: string): Promise<void>;
  /** Subscribes to all events. */
  subscribe(url: string): Promise<void>;
};

/** @param recipientName decides in the sandbox about screening and payout */
export async function createPayer(
  { apiUrl, cardprocSecret }: Pick<BenchStack, 'apiUrl' | 'cardprocSecret'>,
  recipientName: string,
): Promise<Payer> {
  // A request that is made twice would be in the figures.
  const connection = { baseUrl: apiUrl, attemptsMax: 1 };
  const partner = await signUp(connection);
  const { client } = partner;
  const { recipient_id: recipientId } = await client.recipients.create(recipientBody(recipientName));
  const body = cardSettlementBody(recipientId, { amount: AMOUNT, card_token: SILENT_CARD_TOKEN });
  const cardproc = createClient(connection);
  return {
    ...partner,
    settleBody: JSON.stringify(body),
    settle: async () => (await client.settlements.create(body)).settlement_id,
    pay: async (settlementId) => {
      const event = collectedEvent(settlementId);
      const signature = createHmac('sha256', cardprocSecret)
        .update(`${event.created}.${JSON.stringify(event)}`)
        .digest('hex');
      const headers = { 'Cardproc-Signature': `t=${event.created},v1=${signature}` };
      await cardproc.request('POST', '/v2/webhooks/cardproc', { headers, body: event });
    },
    subscribe: async (url) => {
      await client.webhooks.create({ url, event_types: ['*'] });
    },
  };
}

const collectedEvent = (settlementId: string) =>
  ({
    id: `evt_${randomUUID()}`,
    object: 'event',
    type: 'payment_intent.succeeded',
    created: Math.floor(Date.now() / 1_000),
    livemode: false,
    data: {
      object: {
        object: 'payment_intent',
        amount_received: AMOUNT_MINOR,
        currency: 'usd',
        metadata: { settlement_id: settlementId },
      },
    },
  }) as const;
