/** A partner that settles by card, and the card processor that reports the payments. */
import { createHmac, randomUUID } from 'node:crypto';
import { createClient, type RetryReason } from '../../scripts/partner/client.ts';
import { cardSettlementBody, signUp } from '../../scripts/partner/partner.ts';
import type { BenchStack } from './stack.ts';

const AMOUNT = '250.00';
const AMOUNT_MINOR = 25_000;
/** The simulated card processor reports nothing for this token. */
const SILENT_CARD_TOKEN = 'tok_manual';

export type Payer = {
  readonly orgId: string;
  readonly apiKey: string;
  /** The body of `POST /v2/settle`. */
  readonly settleBody: string;
  /** @returns the settlement's id */
  settle(): Promise<string>;
  /** Sends the card processor's signed event: the whole amount was collected. */
  pay(settlementId: string): Promise<void>;
  /** Subscribes to all events. */
  subscribe(url: string): Promise<void>;
  close(): Promise<void>;
};

/** @param recipientName decides in the sandbox about screening and payout */
export async function createPayer(
  { apiUrl, cardprocSecret }: Pick<BenchStack, 'apiUrl' | 'cardprocSecret'>,
  recipientName: string,
  connectionsMax: number,
): Promise<Payer> {
  const client = createClient({ baseUrl: () => apiUrl, connectionsMax, onRetry: refuseRetry });
  const partner = await signUp(client.call);
  const recipientId = await partner.createRecipient({ name: recipientName });
  const body = cardSettlementBody(recipientId, { amount: AMOUNT, card_token: SILENT_CARD_TOKEN });
  return {
    orgId: partner.orgId,
    apiKey: partner.apiKey,
    settleBody: JSON.stringify(body),
    settle: async () => (await partner.settle(body)).settlement_id,
    pay: async (settlementId) => {
      const event = collectedEvent(settlementId);
      const signature = createHmac('sha256', cardprocSecret)
        .update(`${event.created}.${JSON.stringify(event)}`)
        .digest('hex');
      const headers = { 'Cardproc-Signature': `t=${event.created},v1=${signature}` };
      await client.call({ method: 'POST', path: '/v2/webhooks/cardproc', headers, body: event });
    },
    subscribe: async (url) => {
      await partner.call({
        method: 'POST',
        path: '/v1/webhooks',
        body: { url, event_types: ['*'] },
        expectStatus: 201,
      });
    },
    close: () => client.close(),
  };
}

/** A request that is made twice would be in the figures. */
function refuseRetry(reason: RetryReason): never {
  throw new Error(`A request of the benchmark failed: ${reason}.`);
}

const collectedEvent = (settlementId: string) => ({
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
});
