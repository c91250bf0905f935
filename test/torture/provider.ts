/**
 * The provider's side of the oracle: signed events, as the card processor and the bank ledger send them (contract §9).
 */
import { createHmac } from 'node:crypto';
import type { Answer, HttpClient } from './client.ts';
import type { Payment } from './life.ts';

/** Known to the oracle and to the service under test; no secret of anybody. */
export const PROVIDER_SECRETS = {
  cardproc: 'torture-cardproc-secret-0123456789abcdef',
  bankledger: 'torture-bankledger-secret-0123456789abcdef',
} as const;

export type ProviderEvent = {
  readonly id: string;
  readonly settlementId: string;
  readonly what: 'collected' | 'failed' | 'dispute';
  readonly amountMinor: number;
  readonly currency: string;
};

/** Sends the event until it is taken; undefined for a payment without a provider. */
export async function sendProviderEvent(
  http: HttpClient,
  payment: Payment,
  event: ProviderEvent,
): Promise<Answer | undefined> {
  if (payment === 'internal') return undefined;
  const bytes = Buffer.from(JSON.stringify(payment === 'card' ? cardEvent(event) : bankEvent(event, payment)));
  const path = `/v2/webhooks/${payment === 'card' ? 'cardproc' : 'bankledger'}`;
  const headers = payment === 'card' ? signCard(bytes) : { 'x-signature': hmac(PROVIDER_SECRETS.bankledger, bytes) };
  return await http.untilAnswered({ method: 'POST', path, body: bytes, headers });
}

const hmac = (secret: string, ...parts: (string | Buffer)[]): string => {
  const digest = createHmac('sha256', secret);
  for (const part of parts) digest.update(part);
  return digest.digest('hex');
};

function signCard(bytes: Buffer): Record<string, string> {
  const time = Math.floor(Date.now() / 1_000);
  return { 'cardproc-signature': `t=${time},v1=${hmac(PROVIDER_SECRETS.cardproc, `${time}.`, bytes)}` };
}

const CARD_TYPES = {
  collected: 'payment_intent.succeeded',
  failed: 'payment_intent.payment_failed',
  dispute: 'charge.dispute.created',
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
      object: what === 'dispute' ? 'dispute' : 'payment_intent',
      ...(what === 'collected' ? { amount_received: amountMinor } : {}),
      currency: currency.toLowerCase(),
      metadata: { settlement_id: settlementId },
    },
  },
});

/** The bank ledger knows no disputes: a return after funding is what comes closest. */
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
    ...(what === 'collected' ? {} : { return_code: 'R01' }),
    metadata: { settlement_id: settlementId },
  },
});
