/** The events of the card processor and of the bank ledger, and how they sign them (contract §9). */
import { createHmac, randomUUID } from 'node:crypto';

/** For a service that is started as processes of its own. */
export const PROVIDER_SECRETS = {
  cardproc: 'torture-cardproc-secret-0123456789abcdef',
  bankledger: 'torture-bankledger-secret-0123456789abcdef',
} as const;

/** For the API and the worker as processes: the providers' secrets, local subscribers, and no rate limit. */
export const SERVICE_ENV = {
  CARDPROC_WEBHOOK_SECRET: PROVIDER_SECRETS.cardproc,
  BANKLEDGER_WEBHOOK_SECRET: PROVIDER_SECRETS.bankledger,
  WEBHOOK_ALLOW_LOCAL_TARGETS: 'true',
  RATE_LIMIT_PER_MINUTE: '1000000',
};

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

/** A reconciled wire of 250.00 USD. */
export const bankledgerBody = (settlementId: string, data: Record<string, unknown> = {}, event = 'reconciled') => ({
  id: `evt_${randomUUID()}`,
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

type Bytes = Buffer | string;

const hmac = (secret: string, ...parts: readonly Bytes[]): string => {
  const digest = createHmac('sha256', secret);
  for (const part of parts) digest.update(part);
  return digest.digest('hex');
};

/** The header that signs a card event; `timestamp` in seconds. */
export function cardprocSignature(
  bytes: Bytes,
  secret: string,
  timestamp = Math.floor(Date.now() / 1_000),
): Record<string, string> {
  return { 'cardproc-signature': `t=${timestamp},v1=${hmac(secret, `${timestamp}.`, bytes)}` };
}

export const bankledgerSignature = (bytes: Bytes, secret: string): string => hmac(secret, bytes);
