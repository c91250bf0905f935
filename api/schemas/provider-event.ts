/**
 * Bodies of the payment providers' events (contract §9). Only the envelope of an event is required, since a provider
 * sends events of many types. `data` is validated for the types that the service knows. Providers add fields, so these
 * objects are open, and send null for what they do not have.
 */
import { z } from 'zod';
import { constant, EXAMPLE_SETTLEMENT_ID, flag, headerText, nullAsAbsent, objectId, text } from './common.ts';

const EVENT_ID_LENGTH_MAX = 255;
const EVENT_TYPE_LENGTH_MAX = 255;
export const eventId = () =>
  text(1, EVENT_ID_LENGTH_MAX).meta({
    description: 'The id of the event. An event is applied once.',
    example: 'evt_1',
  });
export const eventType = () =>
  text(1, EVENT_TYPE_LENGTH_MAX).meta({ description: 'What happened. Unknown types are stored and not applied.' });
/** A value of another type counts as absent: an event is not refused for a field that only says why. */
export const ifReadable = <Schema extends z.ZodType>(schema: Schema) => nullAsAbsent(schema).catch(undefined);
const minorUnits = () => z.int().min(0);
const currencyCode = () => z.string().regex(/^[A-Za-z]{3}$/, { error: 'a currency code such as USD' });
/** Any text: an event may name a settlement that does not exist. */
const namedSettlement = () => nullAsAbsent(z.looseObject({ settlement_id: nullAsAbsent(z.string()) }));

export const EXAMPLE_DIGEST = '5d41402abc4b2a76b9719d911017c592ae2d1d9d1c1f4e6e3b0c44298fc1c149';

/** Loose objects, because every request has other headers too. The signature is verified before they are read. */
export const signatureHeader = <const Name extends string>(name: Name, description: string, example: string) =>
  z.looseObject({ [name]: headerText(description, example) } as Record<Name, z.ZodString>);

export const CardprocSignature = signatureHeader(
  'cardproc-signature',
  '`t=<unix>,v1=<hex HMAC-SHA256 of "<t>.<body>">`; several `v1` are allowed. The time may differ by 300 seconds.',
  `t=1795248000,v1=${EXAMPLE_DIGEST}`,
);
export const BankledgerSignature = signatureHeader('x-signature', 'The hex HMAC-SHA256 of the body.', EXAMPLE_DIGEST);

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
    '`amount_received` (minor units), `currency`, `metadata.settlement_id`. Of a dispute `amount`, and ' +
    '`last_payment_error.code`, count if they can be read.',
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
      /** Of a dispute. One that cannot be read counts as the whole payment. */
      amount: ifReadable(minorUnits()),
      amount_received: nullAsAbsent(minorUnits()),
      currency: nullAsAbsent(currencyCode()),
      last_payment_error: ifReadable(z.looseObject({ code: ifReadable(z.string()) })),
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
    '`metadata.settlement_id`. `return_code` counts if it can be read. The amounts of several events add up.',
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
    return_code: ifReadable(z.string()),
    metadata: namedSettlement(),
  }),
});
export type KnownBankledgerEvent = z.infer<typeof KnownBankledgerEvent>;

export const ProviderEventReceipt = z
  .object({
    received: constant(true, 'The event is stored.'),
    event_id: objectId('The id under which it is stored.'),
    duplicate: flag('Whether the same event had been received before.'),
    matched: flag('Whether the event is about an object of the service and is applied to it.'),
  })
  .meta({ id: 'ProviderEventReceipt', description: 'The event is stored.' });
