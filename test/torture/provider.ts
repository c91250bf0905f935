/** The providers of a run: signed events, as the card processor and the bank ledger send them (contract §9). */
import { createHmac } from 'node:crypto';
import type { Answer, HttpClient } from './client.ts';
import type { Payment } from './scenario.ts';

/** For the service under test only. */
export const PROVIDER_SECRETS = {
  cardproc: 'torture-cardproc-secret-0123456789abcdef',
  bankledger: 'torture-bankledger-secret-0123456789abcdef',
} as const;

export type ProviderEvent = {
  readonly id: string;
  readonly settlementId: string;
  readonly what: 'collected' | 'failed' | 'taken_back';
  /** A dispute of 0 names no amount. */
  readonly amountMinor: number;
  readonly currency: string;
};

/** Sends the event until it is received. */
export async function sendProviderEvent(
  http: HttpClient,
  payment: Exclude<Payment, 'internal'>,
  event: ProviderEvent,
): Promise<Answer> {
  if (payment === 'card') return await sendCardEvent(http, cardEvent(event));
  const body = JSON.stringify(bankEvent(event, payment));
  const headers = { 'x-signature': hmac(PROVIDER_SECRETS.bankledger, body) };
  return await http.untilAnswered({ method: 'POST', path: '/v2/webhooks/bankledger', body, headers });
}

/** Sends an event that has nothing to do with a settlement, with null where a value is optional. */
export const sendOrdinaryEvent = (http: HttpClient): Promise<Answer> =>
  sendCardEvent(http, {
    id: `evt_${crypto.randomUUID()}`,
    object: 'event',
    type: 'customer.created',
    created: 1_700_000_000,
    livemode: false,
    data: { object: { id: 'cus_1', object: 'customer', currency: null, email: null, metadata: null } },
  });

async function sendCardEvent(http: HttpClient, event: object): Promise<Answer> {
  const body = JSON.stringify(event);
  return await http.untilAnswered({ method: 'POST', path: '/v2/webhooks/cardproc', body, headers: signCard(body) });
}

const hmac = (secret: string, text: string): string => createHmac('sha256', secret).update(text).digest('hex');

/** The header that signs a card event with this body. */
export function signCard(body: string): Record<string, string> {
  const time = Math.floor(Date.now() / 1_000);
  return { 'cardproc-signature': `t=${time},v1=${hmac(PROVIDER_SECRETS.cardproc, `${time}.${body}`)}` };
}

const CARD_TYPES = {
  collected: 'payment_intent.succeeded',
  failed: 'payment_intent.payment_failed',
  taken_back: 'charge.dispute.created',
} as const;

const cardEvent = ({ id, settlementId, what, amountMinor, currency }: ProviderEvent) => ({
  id,
  object: 'event',
  type: CARD_TYPES[what],
  created: 1_700_000_000,
  livemode: false,
  data: {
    object: {
      id: `pi_${id}`,
      object: what === 'taken_back' ? 'dispute' : 'payment_intent',
      ...(what === 'collected' ? { amount_received: amountMinor } : {}),
      ...(what === 'taken_back' && amountMinor > 0 ? { amount: amountMinor } : {}),
      currency: currency.toLowerCase(),
      metadata: { settlement_id: settlementId },
    },
  },
});

/** Insufficient funds. */
export const RETURN_CODE = 'R01';

/** The bank ledger knows neither failures nor disputes: all of them are returns. */
const bankEvent = ({ id, settlementId, what, amountMinor, currency }: ProviderEvent, type: 'ach' | 'wire') => ({
  id,
  event: what === 'collected' ? 'reconciled' : 'returned',
  data: {
    id: `ep_${id}`,
    object: 'expected_payment',
    live_mode: false,
    status: what === 'collected' ? 'reconciled' : 'returned',
    amount_reconciled: amountMinor,
    currency,
    type,
    ...(what === 'collected' ? {} : { return_code: RETURN_CODE }),
    metadata: { settlement_id: settlementId },
  },
});
