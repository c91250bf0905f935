/** The providers of a run: signed events, as the card processor and the bank ledger send them (contract §9). */
import {
  bankledgerBody,
  bankledgerSignature,
  cardprocBody,
  cardprocSignature,
  PROVIDER_SECRETS,
} from '../support/provider-event.ts';
import type { Answer, HttpClient } from './client.ts';
import type { Payment } from './scenario.ts';

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
  const headers = { 'x-signature': bankledgerSignature(body, PROVIDER_SECRETS.bankledger) };
  return await http.untilAnswered({ method: 'POST', path: '/v2/webhooks/bankledger', body, headers });
}

/** Sends an event that has nothing to do with a settlement, with null where a value is optional. */
export const sendOrdinaryEvent = (http: HttpClient): Promise<Answer> =>
  sendCardEvent(http, {
    ...cardprocBody('', {}, 'customer.created'),
    data: { object: { id: 'cus_1', object: 'customer', currency: null, email: null, metadata: null } },
  });

async function sendCardEvent(http: HttpClient, event: object): Promise<Answer> {
  const body = JSON.stringify(event);
  const headers = cardprocSignature(body, PROVIDER_SECRETS.cardproc);
  return await http.untilAnswered({ method: 'POST', path: '/v2/webhooks/cardproc', body, headers });
}

const CARD_TYPES = {
  collected: 'payment_intent.succeeded',
  failed: 'payment_intent.payment_failed',
  taken_back: 'charge.dispute.created',
} as const;

const cardEvent = ({ id, settlementId, what, amountMinor, currency }: ProviderEvent) => ({
  ...cardprocBody(
    settlementId,
    {
      id: `pi_${id}`,
      object: what === 'taken_back' ? 'dispute' : 'payment_intent',
      amount_received: what === 'collected' ? amountMinor : undefined,
      amount: what === 'taken_back' && amountMinor > 0 ? amountMinor : undefined,
      currency: currency.toLowerCase(),
    },
    CARD_TYPES[what],
  ),
  id,
});

/** Insufficient funds. */
export const RETURN_CODE = 'R01';

/** The bank ledger knows neither failures nor disputes: all of them are returns. */
const bankEvent = ({ id, settlementId, what, amountMinor, currency }: ProviderEvent, type: 'ach' | 'wire') => {
  const isReturn = what !== 'collected';
  const data = { amount_reconciled: amountMinor, currency, type, ...(isReturn && { return_code: RETURN_CODE }) };
  return { ...bankledgerBody(settlementId, data, isReturn ? 'returned' : 'reconciled'), id };
};
