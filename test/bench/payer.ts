/** A partner that settles by card, and the card processor that reports the payments. */
import { createClient } from '../../clients/typescript/index.ts';
import { cardSettlementBody, type Partner, recipientBody, signUp } from '../../scripts/sandbox/partner.ts';
import { cardprocBody, cardprocSignature } from '../support/provider-event.ts';
import type { BenchStack } from './stack.ts';

/** The simulated card processor reports nothing for this token. */
const SILENT_CARD_TOKEN = 'tok_manual';

/** Makes settlements, and has them paid. */
export type Settler = {
  /** @returns the settlement's id */
  settle(): Promise<string>;
  /** Sends the provider's signed event: the whole amount was collected. */
  pay(settlementId: string): Promise<void>;
};

export type Payer = Partner &
  Settler & {
    readonly recipientId: string;
    /** The body of `POST /v2/settle`. */
    readonly settleBody: string;
    /** Subscribes to all events. */
    subscribe(url: string): Promise<void>;
  };

/** What a payer needs of a stack. */
export type PayerStack = Pick<BenchStack, 'apiUrl' | 'cardprocSecret'>;

/** @param recipientName decides in the sandbox about screening and payout */
export async function createPayer(
  { apiUrl, cardprocSecret }: PayerStack,
  recipientName = 'Marcia Brown',
): Promise<Payer> {
  // A request that is made twice would be in the figures.
  const connection = { baseUrl: apiUrl, attemptsMax: 1 };
  const partner = await signUp(connection);
  const { client } = partner;
  const { recipient_id: recipientId } = await client.recipients.create(recipientBody(recipientName));
  const body = cardSettlementBody(recipientId, { card_token: SILENT_CARD_TOKEN });
  const cardproc = createClient(connection);
  return {
    ...partner,
    recipientId,
    settleBody: JSON.stringify(body),
    settle: async () => (await client.settlements.create(body)).settlement_id,
    pay: async (settlementId) => {
      const event = cardprocBody(settlementId, { object: 'payment_intent' });
      const headers = cardprocSignature(JSON.stringify(event), cardprocSecret);
      await cardproc.request('POST', '/v2/webhooks/cardproc', { headers, body: event });
    },
    subscribe: async (url) => {
      await client.webhooks.create({ url, event_types: ['*'] });
    },
  };
}
