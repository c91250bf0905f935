/**
 * Bodies of the payment providers' events (contract §9). Only the envelope of an event is required, since a provider
 * sends events of many types. `data` is validated for the types that the service knows. Providers add fields, so these
 * objects are open, and send null for what they do not have.
 */
import { z } from 'zod';
import { EXAMPLE_SETTLEMENT_ID, nullAsAbsent, objectId, text } from './common.ts';

const EVENT_ID_LENGTH_MAX = 255;
const EVENT_TYPE_LENGTH_MAX = 255;
export const eventId = () => text(1, EVENT_ID_LENGTH_MAX);
export const eventType = () => text(1, EVENT_TYPE_LENGTH_MAX);
const minorUnits = () => z.int().min(0);
const currencyCode = () => z.string().regex(/^[A-Za-z]{3}$/);
/** Any text: an event may name a settlement that does not exist. */
const namedSettlement = () => nullAsAbsent(z.looseObject({ settlement_id: nullAsAbsent(z.string()) }));

/** The types of the card processor's events that the service knows. */
export const CARDPROC_TYPES = [
  'payment_intent.succeeded',
  'payment_intent.processing',
  'payment_intent.payment_failed',
  'charge.dispute.created',
  'charge.dispute.closed',
] as const;

/** Any event of the card processor, as Stripe sends them. */
export const CardprocEvent = z.looseObject({ id: eventId(), type: eventType() }).meta({
  id: 'CardprocEvent',
  description:
    'Only `id` and `type` are required. Of the types ' +
    `${CARDPROC_TYPES.map((type) => `\`${type}\``).join(', ')}, \`livemode\` and \`data.object\` are validated: ` +
    '`amount_received` (minor units), `currency`, `last_payment_error.code`, `metadata.settlement_id`.',
  example: {
    id: 'evt_1',
    object: 'event',
    type: 'payment_intent.succeeded',
    created: 1_795_248_000,
    livemode: false,
    data: {
      object: { amount_received: 25_000, currency: 'usd', metadata: { settlement_id: EXAMPLE_SETTLEMENT_ID } },
    },
  },
});
export type CardprocEvent = z.infer<typeof CardprocEvent>;

/** An event of one of the known types. */
export const KnownCardprocEvent = z.looseObject({
  type: z.enum(CARDPROC_TYPES),
  livemode: z.boolean(),
  data: z.looseObject({
    object: z.looseObject({
      amount_received: nullAsAbsent(minorUnits()),
      currency: nullAsAbsent(currencyCode()),
      last_payment_error: nullAsAbsent(z.looseObject({ code: nullAsAbsent(z.string()) })),
      metadata: namedSettlement(),
    }),
  }),
});
export type KnownCardprocEvent = z.infer<typeof KnownCardprocEvent>;

/** The types of the bank ledger's events that the service knows, about an expected payment. */
export const BANKLEDGER_TYPES = ['created', 'reconciled', 'partially_reconciled', 'returned'] as const;
const EXPECTED_PAYMENT = 'expected_payment';

/** Any event of the bank ledger, as Modern Treasury sends them. */
export const BankledgerEvent = z.looseObject({ id: eventId(), event: eventType() }).meta({
  id: 'BankledgerEvent',
  description:
    'Only `id` and `event` are required. Of the events ' +
    `${BANKLEDGER_TYPES.map((type) => `\`${type}\``).join(', ')} about an \`${EXPECTED_PAYMENT}\`, \`data\` is ` +
    'validated: `live_mode`, `amount_reconciled` (the minor units that this event adds), `currency`, `type`, ' +
    '`return_code`, `metadata.settlement_id`. The amounts of several events add up.',
  example: {
    id: 'evt_2',
    event: 'reconciled',
    data: {
      id: 'exp_1',
      object: EXPECTED_PAYMENT,
      live_mode: false,
      status: 'reconciled',
      amount_reconciled: 25_000,
      currency: 'USD',
      metadata: { settlement_id: EXAMPLE_SETTLEMENT_ID },
    },
  },
});
export type BankledgerEvent = z.infer<typeof BankledgerEvent>;

/** An event of a known type about another object, such as a payment order. */
export const OtherBankledgerObject = z.looseObject({
  data: z.looseObject({ object: z.string().refine((object) => object !== EXPECTED_PAYMENT) }),
});

/** An event of one of the known types about an expected payment. */
export const KnownBankledgerEvent = z.looseObject({
  event: z.enum(BANKLEDGER_TYPES),
  data: z.looseObject({
    object: z.literal(EXPECTED_PAYMENT),
    live_mode: z.boolean(),
    amount_reconciled: nullAsAbsent(minorUnits()),
    currency: nullAsAbsent(currencyCode()),
    type: nullAsAbsent(z.string()),
    return_code: nullAsAbsent(z.string()),
    metadata: namedSettlement(),
  }),
});
export type KnownBankledgerEvent = z.infer<typeof KnownBankledgerEvent>;

export const ProviderEventReceipt = z
  .object({ received: z.literal(true), event_id: objectId(), duplicate: z.boolean(), matched: z.boolean() })
  .meta({ id: 'ProviderEventReceipt' });
